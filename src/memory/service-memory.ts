import { REAL_ENVIRONMENT } from '../environment.ts'
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
 * Divides `memoryBytesMax` bytes, 96 MB by default. Buffers that nobody uses may take what requests do not hold, up to
 * five sixteenths of it: as much as a walk through 1,000,000 objects lends. What is not kept is garbage, and still there
 * when the next walk takes its own. Two sixteenths are kept longer than a few seconds, and in any case; one of them is
 * in addition.
 */
export function divideMemory(
  memoryBytesMax: number = MEMORY_BYTES_MAX,
  options: Omit<MemoryBudgetOptions, 'stepBytes'> = {},
): ServiceMemory {
  const sixteenth = Math.floor(memoryBytesMax / 16)
  const { environment = REAL_ENVIRONMENT } = options
  const lastingBytesMax = 2 * sixteenth
  const bytesMax = (): number => Math.min(5 * sixteenth, lastingBytesMax + requests.freeBytes)
  const bufferPool = new BufferPool({ bytesMax, lastingBytesMax, environment })
  const requests: MemoryBudget = new MemoryBudget(memoryBytesMax - 6 * sixteenth, {
    ...options,
    stepBytes: STEP_BYTES,
    bufferPool,
    onShortage: () => answers.shrinkPaused(),
  })
  const countAnswer = (bytes: number): void => requests.count(bytes)
  const answers = new AnswerMemory(2 * sixteenth, countAnswer, environment, bufferPool)
  const deltasBytes = sixteenth >> 1
  return { requests, answers, tablesBytes: 3 * sixteenth, plansBytes: 2 * sixteenth - deltasBytes, deltasBytes }
}
