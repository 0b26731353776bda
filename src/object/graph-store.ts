import type { GraphCollector } from './collection.ts'
import type { GraphCompactor } from './compaction.ts'
import type { StoreEpochs } from './epochs.ts'
import type { Janitor } from './janitor.ts'
import type { PinStore, UsageCounter } from './roots.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import type { ObjectBatch } from './batch.ts'
import type { IdSet } from './id-set.ts'
import type { Selection } from './selection.ts'

export interface PutResult {
  /** Received objects, each id once. */
  readonly objects: number
  /** How many of these were not held before. */
  readonly inserted: number
  /** How many of the others arrived with a text that differs from the held one. The held one stays. */
  readonly differing: number
  /** The ids of these, the first hundred. */
  readonly differingIds?: readonly string[]
}

/** The number of ids of differing objects that are kept. */
export const DIFFERING_IDS_MAX = 100

/** A root that the client has, with the digest of the closure it saw (`Stowage-Closure`) if it kept it. */
export interface HaveRoot {
  readonly id: string
  readonly digest?: string
}

export interface SignalOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  readonly signal: AbortSignal
}

export interface PutOptions extends SignalOptions {
  /** The lease of the request; the store adds its own needs to it. Without it, the store opens a lease of its own. */
  readonly memory?: MemoryLease
  /** Bytes of the body on the wire, where its length is known before it is read. */
  readonly bodyBytes?: number | undefined
}

/** How much a project holds: what its packs hold, which an upload adds to. */
export interface ProjectTotals {
  /** Objects, with those that were condemned and not freed. */
  readonly objects: number
  /** Bytes of JSON of all objects. */
  readonly jsonBytes: number
  /** Bytes of the packs in storage, compressed, with their tables. */
  readonly storedBytes: number
}

/** How much a project holds, with its name. */
export interface ProjectSize extends ProjectTotals {
  /** The project. */
  readonly projectId: string
}

/** How much all projects hold. */
export interface StoreTotals {
  /** The number of projects that hold objects. */
  readonly projects: number
  /** The projects with the most stored bytes, the largest first: at most 100. */
  readonly largest: readonly ProjectSize[]
  /** All other projects together. */
  readonly others: ProjectTotals
  /** Projects whose records of this are lost or damaged. They are in none of the other members. */
  readonly uncountedProjects: number
}

/** Reads the totals of all projects. */
export interface TotalsReader {
  /** At most 30 s old unless reading takes long. Throws `overloaded` if the first reading takes longer than 2 s. */
  read(): Promise<StoreTotals>
}

/** How much a project may hold; an omitted member is unlimited. */
export interface ProjectQuota {
  /** The most objects. */
  readonly objectsMax?: number | undefined
  /** The most bytes of JSON. */
  readonly jsonBytesMax?: number | undefined
  /** The most bytes on disk. */
  readonly storedBytesMax?: number | undefined
}

/**
 * The interfaces that the operations need of a store, each one narrow. `PackStore` implements them all; a host's
 * `ObjectStore` is wrapped to implement the first four.
 */
export interface ObjectWriter {
  /**
   * One request: all or nothing, durable when it resolves. If `batches` throws or `signal` aborts, nothing of it is
   * visible.
   */
  put(projectId: string, batches: AsyncIterable<ObjectBatch>, options: PutOptions): Promise<PutResult>
}

export interface ObjectPresence {
  /** One byte for each id of the set, in its order: 1 if it is held. */
  has(projectId: string, ids: IdSet, options: SignalOptions): Promise<Uint8Array>
}

export interface ObjectSelector {
  /** The objects of the list that are held, each once. */
  select(projectId: string, ids: IdSet, options: SignalOptions): Promise<Selection>
  /**
   * The JSON text of one object, leased; `undefined` if it is not held. Absent if the store has no shorter way than
   * `select`.
   */
  text?(projectId: string, id: Uint8Array, options: TextOptions): Promise<Uint8Array | undefined>
}

export interface TextOptions extends SignalOptions {
  /** The lease of the request; it covers the text. */
  readonly memory?: MemoryLease | undefined
}

export interface ClosureSelector {
  /**
   * A root with everything below it; `undefined` if the root itself is not held. Throws `not_supported` for `have` if
   * the store has no plans.
   */
  closure(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined>
}

export interface ClosureOptions extends SignalOptions {
  readonly have?: readonly HaveRoot[]
  /** The lease for the memory that `have` needs. */
  readonly memory?: MemoryLease
  /** Objects may be sent as deltas on objects of the first root that is subtracted: lines `<id> TAB [base, ...] LF`. */
  readonly deltas?: boolean
  /** A length, an entity tag or a range is asked for, which only a plan gives: a longer wait for it is worthwhile. */
  readonly needsPlan?: boolean
}

export interface ProjectCatalog {
  /** Ids of the projects that hold something, in batches. */
  projects(): AsyncIterable<readonly string[]>
  /** Whether `projects` lists it. */
  holds(projectId: string): Promise<boolean>
  /** Unreadable at once; the space is freed later. Resolves also for a project that does not exist. */
  remove(projectId: string): Promise<void>
}

/**
 * A place in the order in which a project keeps its objects. It holds for one history of the project: not after the
 * project was removed, not in the project of another server, and not if an older copy of the storage was put back.
 */
export interface ObjectCursor {
  readonly generation: number
  readonly sequence: number
  readonly ordinal: number
  /** The layout of the project when the run began: all of its pages tell where objects lay then. */
  readonly layout: number
  /** Everything that was written before this epoch lies before the place, also if a merge moved it behind the place. */
  readonly epoch: number
  /** The moment at which the run began: its number, and the random id that the history alone knows. */
  readonly point: { readonly number: number; readonly id: string }
}

export interface ObjectPageOptions extends SignalOptions {
  /** The end of the page before, or of an earlier run. From the beginning by default. */
  readonly after?: ObjectCursor
  /**
   * The `end` of the first page of the run. Packs that were merged since then are read as they were, so that each
   * object comes once. Without it a run begins.
   */
  readonly until?: ObjectCursor
  /** The page ends with the line that reaches this many bytes. */
  readonly textBytesMax: number
}

/** A part of everything that a project holds. */
export interface ObjectPage {
  /** To be released. It may be empty before the end, while an upload is being applied. */
  readonly selection: Selection
  /** Where the next page begins. The run is over when it equals `end`. */
  readonly next: ObjectCursor
  /** The end of the run: of all objects that were acknowledged before its first page was requested. */
  readonly end: ObjectCursor
}

export interface ObjectPager {
  /** `undefined` if the project does not exist. Throws `conflict` for a cursor of another history. */
  page(projectId: string, options: ObjectPageOptions): Promise<ObjectPage | undefined>
}

export interface GraphStore extends ObjectWriter, ObjectPresence, ObjectSelector, ClosureSelector, ProjectCatalog {
  /** Absent over a host's own `ObjectStore`. */
  readonly epochs?: StoreEpochs
  readonly janitor?: Janitor
  readonly pins?: PinStore
  readonly usages?: UsageCounter
  readonly totals?: TotalsReader
  /** Frees objects that no root reaches. Absent if the store keeps everything. */
  readonly collector?: GraphCollector
  /** Merges packs. Absent if the store has none. */
  readonly compactor?: GraphCompactor
  ready(): Promise<void>
  close(): Promise<void>
  /** Everything of a project, page by page; absent if the store cannot list its contents. */
  readonly pager?: ObjectPager
  /** The memory that its budgets currently hold; absent if it has none. */
  memory?(): { readonly requests: MemoryInUse; readonly answers: MemoryInUse }
}

/** The part of a memory budget that is in use, in bytes. */
export interface MemoryInUse {
  /** Bytes that are leased now. */
  readonly heldBytes: number
  /** The most bytes that may be leased. */
  readonly limitBytes: number
}
