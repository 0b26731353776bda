import { MB } from '../limits.ts'
import { AnswerMemory } from './answer-memory.ts'
import { BufferPool } from './buffer-pool.ts'
import { MemoryBudget, type MemoryBudgetOptions } from './memory-budget.ts'

/** The memory of one service, divided. */
export interface ServiceMemory {
  /** The memory that requests hold while they are under way; the memory of responses counts as well. */
  readonly requests: MemoryBudget
  /** The buffers of answers that are being sent: an eighth. */
  readonly answers: AnswerMemory
  /** Tables of packs that were used last: three sixteenths. */
  readonly tablesBytes: number
  /** Plans that were used last: three quarters of an eighth. */
  readonly plansBytes: number
  /** Delta answers that were asked for last: the rest of that eighth. */
  readonly deltasBytes: number
}

/** The default of `memoryBytesMax`. */
export const MEMORY_BYTES_MAX: number = 96 * MB
/** Leases grow by this much, so that small requests never ask twice. */
const STEP_BYTES = 65_536

/**
 * Divides `memoryBytesMax` bytes, 96 MB by default. Buffers that are kept for the next users come in addition, all but a
 * sixteenth. They are to hold two tables of merged packs: otherwise a walk would make new ones of 6 MB for each pack.
 */
export function divideMemory(
  memoryBytesMax: number = MEMORY_BYTES_MAX,
  options: Omit<MemoryBudgetOptions, 'stepBytes'> = {},
): ServiceMemory {
  const share = Math.floor(memoryBytesMax / 8)
  const larger = share + (share >> 1)
  const bufferPool = new BufferPool(larger)
  const requests = new MemoryBudget(memoryBytesMax - share * 3, {
    ...options,
    stepBytes: STEP_BYTES,
    bufferPool,
    onShortage: () => answers.shrinkPaused(),
  })
  const answers = new AnswerMemory(share, (bytes) => requests.count(bytes), options.environment, bufferPool)
  const deltasBytes = share >> 2
  return { requests, answers, tablesBytes: larger, plansBytes: share - deltasBytes, deltasBytes }
}
