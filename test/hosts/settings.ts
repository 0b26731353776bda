import type { Limits } from '../../src/index.ts'

export interface ServerSettings {
  /** One of those in `mounts/hosts.ts`. */
  readonly host: string
  /** The data folder. */
  readonly path: string
  readonly prefix: string
  readonly limits?: Partial<Limits>
  readonly stallTimeoutMs?: number
  readonly headersTimeoutMs?: number
}

export interface Holdings {
  /** Heap and buffers, after garbage was collected. */
  readonly heldBytes: number
  readonly rssBytes: number
  /** The highest since the process began. */
  readonly rssBytesMax: number
  /** How late the event loop was, at the 99th percentile since it was watched. */
  readonly loopP99Ms: number
  readonly connections: number
}

export type Told = 'holdings' | 'watch loop' | 'take all files' | 'give files back' | 'fail syncs' | 'let syncs be'
export type Command = Told | { readonly close: { readonly graceMs: number } }
