import type { ReadRoots } from './collection.ts'

/** How far a compaction is. */
export interface CompactionProgress {
  /** Merges that took effect. */
  readonly merges: number
  /** Bytes of packs that were read. */
  readonly storedBytes: number
  /** Bytes of all packs that this compaction chose so far. */
  readonly storedBytesTotal: number
}

export interface CompactOptions {
  readonly signal: AbortSignal
  /** Merges all packs that can be merged, rather than the fewest that keep the number of packs low. */
  readonly all?: boolean
  /** The share of one processor that it may use, above 0 and at most 1. Default: 1. */
  readonly processorShare?: number
  readonly onProgress?: ((progress: CompactionProgress) => void) | undefined
}

/** The result of one compaction of a project. */
export interface CompactionReport {
  /** Merges that took effect. */
  readonly merges: number
  /** Active packs when it began: retired ones are not counted. */
  readonly packsBefore: number
  /** Active packs when it ended. */
  readonly packsAfter: number
  /** Bytes of active packs when it began. */
  readonly storedBytesBefore: number
  /** Bytes of active packs when it ended. */
  readonly storedBytesAfter: number
  /**
   * Bytes of all retired packs when it ended, those of earlier compactions included. They leave the disk once no
   * download can read them any more.
   */
  readonly retiredBytes: number
  /** Why it stopped before the end: the storage is full. `null` if it came to the end. */
  readonly stopped: 'storageFull' | null
}

/** Merges packs. Several servers may compact the same project: one merge of it is under way at a time. */
export interface GraphCompactor {
  /**
   * Merges small packs and those with much that is not live, the objects of the newest roots first. Finishes a merge
   * that was cut off. `undefined` if the project does not exist. Stopped by the signal at any moment without loss.
   */
  compact(projectId: string, roots: ReadRoots, options: CompactOptions): Promise<CompactionReport | undefined>
}
