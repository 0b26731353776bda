import type { ReadRoots } from './collection.ts'
import type { CompactionProgress, CompactionReport, DamagedPack } from './upkeep-wire-types.ts'

export type { CompactionProgress, CompactionReport, DamagedPack }

/** Damaged packs that one report names. */
export const DAMAGED_MAX = 100

export interface CompactOptions {
  readonly signal: AbortSignal
  /** Merges all packs that can be merged, rather than the fewest that keep the number of packs low. */
  readonly all?: boolean
  /** The share of one processor that it may use, above 0 and at most 1. Default: 1. */
  readonly processorShare?: number
  readonly onProgress?: ((progress: CompactionProgress) => void) | undefined
}

/** Merges packs. Several servers may compact the same project: one merge of it is under way at a time. */
export interface GraphCompactor {
  /**
   * Merges small packs and those with much that is not live, the objects of the newest roots first. Finishes a merge
   * that was cut off. `undefined` if the project does not exist. Stopped by the signal at any moment without loss.
   */
  compact(projectId: string, roots: ReadRoots, options: CompactOptions): Promise<CompactionReport | undefined>
}
