import type { HeldCall } from '../../../src/simulation/faults.ts'
import type { PlannedVersion } from '../../../src/simulation/models.ts'

/** One of the calls that the server makes from then on takes long. */
interface Held {
  readonly hold?: Omit<HeldCall, 'machine'>
}

/** What somebody does. `draw` chooses among what is known then. */
export type Act =
  | { readonly kind: 'model' | 'list' | 'restart' | 'crash' | 'compact' | 'wait' }
  | { readonly kind: 'automation'; readonly draw: number; readonly functionId: string }
  | { readonly kind: 'upload'; readonly content: PlannedVersion }
  /** Uploads what it needs, unless that is there. */
  | (Held & {
      readonly kind: 'version'
      readonly draw: number
      readonly content: PlannedVersion
      readonly isThere?: boolean
    })
  | { readonly kind: 'start'; readonly draw: number }
  | { readonly kind: 'cancel'; readonly draw: number }
  | { readonly kind: 'read'; readonly draw: number }
  | { readonly kind: 'delete' | 'restore'; readonly draw: number; readonly what: 'model' | 'version' }
  | { readonly kind: 'age'; readonly epochs: number }
  /** The server that did the act before stands still. */
  | { readonly kind: 'sleep'; readonly durationMs: number }
  | (Held & { readonly kind: 'collect'; readonly graceEpochs: number; readonly undoEpochs: number })

/** An act in its place and time. */
export type AutomationOperation = Act & {
  readonly index: number
  /** When it begins. */
  readonly atMs: number
  readonly server: number
}
