import type { MemoryLease } from '../memory/memory-lease.ts'

/**
 * The objects that a store has chosen to send, before the format is known. A store makes selections, `emit` turns them
 * into bytes; neither imports the other.
 */
export interface Selection {
  /** Objects that will be sent. */
  readonly objects: number
  /** Ids that were asked for or referred to and are not held. */
  readonly missing: number
  /** The ids behind `missing`, at most `limit` of them. Of a list only the first `MISSING_IDS_TOLD_MAX` are known. */
  missingIds(limit: number): Promise<readonly string[]>
  /** The bytes of the texts of all its objects, if known. */
  readonly textBytes?: number
  /** Whether the selection needs the set of ids by which it was chosen for as long as it lives. */
  readonly keepsIds?: boolean
  /** Names the set of objects of a root's closure, for `?have=ID@digest`. Only for closures. */
  readonly closureDigest?: string
  /** Only for closures with `have`: whether each root the client has was subtracted, and if not, why. */
  readonly have?: readonly HaveOutcome[]
  /** Present when a plan fixes every byte of the answer. */
  readonly plan?: PlannedSelection
  /** How large the buffers of its response should be at the moment. Absent: as large as is best. */
  readonly roomBytes?: number
  /** Where the buffers of its answer may be given back. */
  readonly memory?: ReusedMemory
  /**
   * Leases what it and the buffers of its response hold, before its first byte is read. Rejects as `MemoryLease.hold`
   * does. Absent: its memory is not bounded.
   */
  lease?(memory: MemoryLease): Promise<void>
  /**
   * Whole lines `<id> TAB <json> LF` in large buffers, root first. The buffers belong to the caller, who may write into
   * them.
   */
  lines(options: SelectionReadOptions): AsyncIterable<Uint8Array>
  /** The same lines, compressed if they are stored so. In batches, to be read one after the other. */
  fragments(options: SelectionReadOptions): AsyncIterable<readonly Fragment[]>
  /** Frees the resources of the selection. Called exactly once, also if nothing was read. */
  release(): void
}

/** Memory that is lent for the buffers of answers. */
export interface ReusedMemory {
  /** Memory with undefined content; `undefined` if so few bytes are not worth it. */
  take(sizeBytes: number): Uint8Array | undefined
  /**
   * Says that nobody refers to these bytes any more: they were copied, or the system has sent them. Once that was said
   * of all bytes that were lent together, they may be lent again. Callers that do not know say nothing. Bytes that were
   * not lent are left alone. Each byte may be given back once.
   */
  giveBack(bytes: Uint8Array): void
}

/** The most missing ids that a response lists. */
export const MISSING_IDS_TOLD_MAX = 100

export interface SelectionReadOptions {
  readonly signal: AbortSignal
}

export interface HaveOutcome {
  readonly id: string
  readonly outcome: 'subtracted' | 'unknown' | 'incomplete' | 'digest-mismatch'
}

/**
 * Lines, or lines as raw DEFLATE (RFC 1951) that ends on a byte boundary, is not final, and refers to nothing before
 * it.
 */
export type Fragment =
  | { readonly deflated: Uint8Array; readonly rawBytes: number; readonly crc32: number }
  | { readonly lines: Uint8Array }

/** Everything about a planned answer is known before its first byte. */
export interface PlannedSelection {
  /** Changes whenever any byte of the answer would: hex digits, the seed of strong entity tags. */
  readonly digest: string
  /** Bytes of all stored fragments together. */
  readonly storedBytes: number
  /** Bytes of all lines together, and their CRC-32. */
  readonly rawBytes: number
  readonly crc32: number
  /** Bytes of all ids together, so that the size of the JSON array is known: `rawBytes - idBytes - objects + 1`. */
  readonly idBytes: number
  /** The stored fragments as one byte string, from `start` up to, not including, `end`, in large buffers. */
  stored(start: number, end: number, options: SelectionReadOptions): AsyncIterable<Uint8Array>
  /**
   * Lines from a place near `offset`. In `text` an object counts its line; in `json` its JSON text and the one
   * separator before it. The lines begin at an object whose first byte is at `offset - skip`.
   */
  linesFrom(
    unit: 'text' | 'json',
    offset: number,
    options: SelectionReadOptions,
  ): { readonly skip: number; readonly lines: AsyncIterable<Uint8Array> }
}
