import type {
  ChosenReport,
  CollectionProgress,
  CollectionReport,
  ObjectAmount,
  UnreferencedCursor,
  UnreferencedPage,
} from '../object/collection.ts'
import type { CompactionProgress, CompactionReport } from '../object/compaction.ts'
import type { CallOptions } from '../storage/backend.ts'

/** How long objects are kept, and how a collection tells how far it is. */
export interface CollectCallOptions extends CallOptions {
  /**
   * Younger objects are kept, with everything below them. By default the service's own `collection.olderThanMs`. Counted
   * in epochs of the store, of ten minutes each, rounded up: time in which no server runs does not count.
   */
  readonly olderThanMs?: number | undefined
  /**
   * How long condemned objects can be restored, before a later collection frees them. By default the service's own
   * `collection.undoMs`.
   */
  readonly undoMs?: number | undefined
  /** Counts what a collection would do now, and changes nothing. */
  readonly dryRun?: boolean | undefined
  /** Called now and then. */
  readonly onProgress?: ((progress: CollectionProgress) => void) | undefined
}

/** How a compaction works, and how it tells how far it is. */
export interface CompactCallOptions extends CallOptions {
  /** Merges all packs that can be merged, rather than the fewest that keep their number low. */
  readonly all?: boolean | undefined
  /** The share of one processor that it may use, above 0 and at most 1. Default: 1. */
  readonly processorShare?: number | undefined
  /** Called now and then. */
  readonly onProgress?: ((progress: CompactionProgress) => void) | undefined
}

/** Which part of the unreferenced objects is wanted. */
export interface UnreferencedCallOptions extends CallOptions {
  /** At most this many objects, from 1 to 1,000. 100 by default. */
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly after?: UnreferencedCursor | undefined
  /** Only objects that nothing refers to. */
  readonly topsOnly?: boolean | undefined
}

/** Collection and compaction of one project. Over a host's own `ObjectStore`, all throw `not_supported`. */
export interface ProjectUpkeep {
  /**
   * Condemns the objects that no version, no pin and no young object leads to, and frees those that were condemned long
   * enough. Uploads and downloads go on meanwhile. A project with neither a version nor a pin is never collected.
   * Aborted at any moment without loss. Throws `not_found` for a project without objects.
   */
  collect(options?: CollectCallOptions): Promise<CollectionReport>
  /**
   * Undo: condemned objects that were not freed are live again. Resolves to what it restored. Throws `not_found` for a
   * project without objects.
   */
  restoreCollected(options?: Pick<CollectCallOptions, 'signal' | 'onProgress'>): Promise<ObjectAmount>
  /** The objects that no version and no pin leads to, in the order in which they are stored. */
  unreferenced(options?: UnreferencedCallOptions): Promise<UnreferencedPage>
  /**
   * Condemns chosen objects, 1,000 at most, with the objects below them that nothing else leads to. They need not be
   * old: one epoch by default. Works in a project without versions and pins too.
   */
  collectObjects(ids: readonly string[], options?: Omit<CollectCallOptions, 'undoMs'>): Promise<ChosenReport>
  /**
   * Merges small packs and packs with much that was collected. Uploads and downloads go on meanwhile. Aborted at any
   * moment without loss. Throws `not_found` for a project without objects.
   */
  compact(options?: CompactCallOptions): Promise<CompactionReport>
}
