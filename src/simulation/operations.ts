import type { HeldCall } from './faults.ts'
import type { PlannedObject } from './models.ts'

/**
 * So long after the server began with an operation, or when its first call of this kind since then took effect. In a
 * collection, `commit t` frees objects and lowers the totals; in a merge, `commit k` retires the packs that it replaces.
 */
export type PlannedSleep = { readonly durationMs: number } & (
  | { readonly afterMs: number }
  | { readonly afterCall: 'commit' | 'commit k' | 'commit t' | 'put publishes' }
)

interface Planned {
  /** Its place in the plan, which stays when others are left out. */
  readonly index: number
  readonly atMs: number
  readonly server: number
  readonly projectId: string
  /** The client waits so long; a minute by default. */
  readonly patienceMs?: number
  /** The server dies so long after it began with this. */
  readonly crashAfterMs?: number
  /** The server stands still for so long. */
  readonly sleep?: PlannedSleep
  /** One of the calls that the server makes from now on takes long. */
  readonly hold?: Omit<HeldCall, 'machine'>
}

/**
 * Objects for an upload; `isBroken` cuts the body in the middle, `asks` omits the objects that the server says it
 * holds.
 */
export interface PlannedUpload extends Planned {
  readonly kind: 'upload'
  readonly objects: readonly PlannedObject[]
  readonly isBroken: boolean
  readonly isZipped: boolean
  readonly asks: boolean
  /** So many requests, one after the other. */
  readonly requests: number
  /** An older version, as the base of deltas, if the client has it. */
  readonly olderRootId?: string | undefined
  /** The server is told the length of the body, as over HTTP. */
  readonly isLengthKnown?: boolean
}

/** A graph, whole or without the objects that the client has of an older version. */
export interface PlannedDownload extends Planned {
  readonly kind: 'download'
  readonly rootId: string
  readonly form: 'records' | 'gzip' | 'identity' | 'deltas'
  readonly haveRootId: string | undefined
  /** The client rests for so long after each piece. */
  readonly pauseMs?: number
}

export interface PlannedLookUp extends Planned {
  readonly kind: 'has' | 'list' | 'single'
  readonly ids: readonly string[]
}

export interface PlannedRemoval extends Planned {
  readonly kind: 'remove'
}

/** Keeps a root and everything below it. */
export interface PlannedPin extends Planned {
  readonly kind: 'pin'
  readonly rootId: string
}

/** Removes one of the pins that the client knows. */
export interface PlannedUnpin extends Planned {
  readonly kind: 'unpin'
  readonly draw: number
}

/** Everything that the project holds, page by page. */
export interface PlannedExport extends Planned {
  readonly kind: 'export'
  readonly pageBytes: number
}

/** How much there is. */
export interface PlannedCount extends Planned {
  readonly kind: 'usage'
}

/** Merges packs. */
export interface PlannedCompaction extends Planned {
  readonly kind: 'compact'
  readonly all: boolean
}

/** Frees what no root reaches. */
export interface PlannedCollection extends Planned {
  readonly kind: 'collect'
  readonly graceEpochs: number
  readonly undoEpochs: number
  readonly isDryRun: boolean
}

/** Lists what no root reaches, and condemns some of it, with what is below that alone. */
export interface PlannedChoice extends Planned {
  readonly kind: 'choose'
  /** Objects that are chosen in any case, whether or not they are listed. */
  readonly ids: readonly string[]
  /** Each listed object is chosen with this probability. */
  readonly share: number
  /** Decides which. */
  readonly draw: number
  readonly pageObjects: number
  readonly topsOnly: boolean
  readonly graceEpochs: number
  readonly isDryRun: boolean
}

/** Undoes collections. */
export interface PlannedRestoration extends Planned {
  readonly kind: 'restore'
}

/**
 * Time passes while nobody asks for anything: so many epochs of the store, and then a while. What was planned before
 * has ended, and what is planned behind waits; `isBeside` lets the epochs begin while others go on.
 */
export interface PlannedAge extends Planned {
  readonly kind: 'age'
  readonly epochs: number
  readonly waitMs?: number
  readonly isBeside?: boolean
}

/** All servers are stopped, and an operator checks the storage, or has its records written anew. */
export interface PlannedMaintenance extends Planned {
  readonly kind: 'maintenance'
  readonly task: 'check' | 'reindex'
  /** The disk is full so many calls after it began. */
  readonly fullAfterCalls?: number
}

/** Closes the service and starts it anew. */
export interface PlannedRestart extends Planned {
  readonly kind: 'restart'
}

/** An action of a client, or of an operator. */
export type Operation =
  | PlannedUpload
  | PlannedDownload
  | PlannedLookUp
  | PlannedRemoval
  | PlannedPin
  | PlannedUnpin
  | PlannedExport
  | PlannedCount
  | PlannedCompaction
  | PlannedCollection
  | PlannedChoice
  | PlannedRestoration
  | PlannedAge
  | PlannedMaintenance
  | PlannedRestart
/** An action that one server serves. */
export type ServedOperation = Exclude<Operation, PlannedRestart | PlannedMaintenance | PlannedAge>

/** The operation without its place. */
export type Unplaced = Operation extends infer O
  ? O extends Operation
    ? Omit<O, 'index' | 'atMs' | 'server'>
    : never
  : never
