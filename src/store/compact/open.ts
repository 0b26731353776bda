import { DeflatePool } from '../../compression/deflate-pool.ts'
import type { Clock } from '../../environment.ts'
import type { EpochCounter } from '../upkeep/epochs.ts'
import { type CompactorParts, PackCompactor } from './compactor.ts'
import { PlanUpkeep, type PlanUpkeepParts } from './plan-upkeep.ts'

/**
 * Nobody waits for a merge, and what it writes stays. On 100 versions of a building the older ones took 9 in 100 less
 * than at the level of uploads, and the newest one 4 in 100 less.
 */
const MERGE_COMPRESSION_LEVEL = 6

/** What a compactor needs of a store. */
export interface StoreParts extends Omit<CompactorParts, 'epoch' | 'nowMs' | 'openDeflate' | 'closureOf' | 'plans'> {
  readonly epochs: Pick<EpochCounter, 'recent'>
  readonly clock: Clock
  readonly graphs: Pick<CompactorParts, 'closureOf'> & Pick<PlanUpkeepParts, 'replan'>
}

export function openCompactor({ epochs, clock, graphs, ...parts }: StoreParts): PackCompactor {
  const { environment } = parts
  const epoch = (): Promise<number> => epochs.recent()
  return new PackCompactor({
    ...parts,
    epoch,
    nowMs: () => clock.now(),
    // One lane: compression takes one core at most.
    openDeflate: () => new DeflatePool({ level: MERGE_COMPRESSION_LEVEL, concurrency: 1, environment }),
    closureOf: (...root) => graphs.closureOf(...root),
    plans: new PlanUpkeep({ ...parts, epoch, replan: (...root) => graphs.replan(...root) }),
  })
}
