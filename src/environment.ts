import { randomBytes, randomFillSync } from 'node:crypto'
import { availableParallelism } from 'node:os'

/** The source of the time of day. `Date` is one; tests pass their own. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
}

/** A timer that was set. */
export interface Timer {
  /** The timer does not fire any more. Cancelling again, or after it fired, is fine. */
  cancel(): void
  /** The process may end before the timer fires. */
  unref(): this
}

/**
 * Everything that the core takes from its surroundings apart from its storage: time, timers, turns of the event loop, randomness and the thread pool.
 * `REAL_ENVIRONMENT` is that of the process. A simulation passes its own, so that a seed decides all of it.
 */
export interface Environment extends Clock {
  /** Milliseconds since some moment; never goes back. */
  monotonicMs(): number
  /** Calls `act` after `delayMs` milliseconds, unless it is cancelled before. */
  setTimer(delayMs: number, act: () => void): Timer
  /** Resolves when the event loop has turned: everybody else had a chance to go on. */
  nextTurn(): Promise<void>
  /** Resolves in a later turn of the event loop that has time for a few milliseconds of work. */
  workTurn(): Promise<void>
  /** Bytes that nobody can guess. */
  randomBytes(sizeBytes: number): Uint8Array
  /** How many things can be computed at once. */
  readonly parallelism: number
  /** False where compression runs on the calling thread. The result is the same. */
  readonly usesThreadPool: boolean
  /**
   * Under which tables hash what clients send, drawn at random: who could predict it could make every look-up walk a
   * whole table.
   */
  readonly hashKey: HashKey
}

/** 64 random bits, as two signed integers. */
export interface HashKey {
  /** The lower 32 bits. */
  readonly low: number
  /** The upper 32 bits. */
  readonly high: number
}

/** Few bytes cost as much as many: a call of the system's generator takes two microseconds. */
class RandomPool {
  static readonly #POOL_BYTES = 4_096
  /** More are drawn on their own. */
  static readonly #SHORT_BYTES_MAX = 64
  readonly #pool = new Uint8Array(RandomPool.#POOL_BYTES)
  #used = RandomPool.#POOL_BYTES

  /** Bytes that are given out once, and of which no copy stays here. */
  take(sizeBytes: number): Uint8Array {
    if (sizeBytes > RandomPool.#SHORT_BYTES_MAX) return randomBytes(sizeBytes)
    if (this.#used + sizeBytes > RandomPool.#POOL_BYTES) {
      randomFillSync(this.#pool)
      this.#used = 0
    }
    const [from, end] = [this.#used, this.#used + sizeBytes]
    this.#used = end
    const bytes = this.#pool.slice(from, end)
    this.#pool.fill(0, from, end)
    return bytes
  }
}

const randomPool = new RandomPool()

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Bounds the time that long computations take of each turn of the event loop. They queue, first come, first served.
 * Without the bound, each of 22 uploads would work for up to 8 ms in every turn: a turn would take a fifth of a second,
 * and a small request, which needs a few dozen turns, several seconds.
 */
export class WorkTurns {
  /** After this time, no further step begins in the same turn. */
  static readonly #SHARE_MS = 4
  readonly #clock: Pick<Environment, 'monotonicMs' | 'nextTurn'>
  readonly #waiting: (() => void)[] = []
  #isServing = false

  constructor(clock: Pick<Environment, 'monotonicMs' | 'nextTurn'>) {
    this.#clock = clock
  }

  /** Resolves when the next step may begin. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (!this.#isServing) void this.#serve()
    })
  }

  async #serve(): Promise<void> {
    this.#isServing = true
    while (this.#waiting.length > 0) {
      await this.#clock.nextTurn()
      const beganMs = this.#clock.monotonicMs()
      do {
        this.#waiting.shift()?.()
        // The tick comes when the step has ended: it follows all work that needs no other turn.
        await new Promise<void>((resolve) => process.nextTick(resolve))
      } while (this.#waiting.length > 0 && this.#clock.monotonicMs() - beganMs < WorkTurns.#SHARE_MS)
    }
    this.#isServing = false
  }
}

const workTurns = new WorkTurns({ monotonicMs: () => performance.now(), nextTurn })

/** The surroundings of this process. */
export const REAL_ENVIRONMENT: Environment = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, act) => new ProcessTimer(setTimeout(act, delayMs)),
  nextTurn,
  workTurn: () => workTurns.next(),
  randomBytes: (sizeBytes) => randomPool.take(sizeBytes),
  parallelism: availableParallelism(),
  usesThreadPool: true,
  hashKey: hashKeyOf(randomBytes(8)),
}

class ProcessTimer implements Timer {
  readonly #timeout: NodeJS.Timeout

  constructor(timeout: NodeJS.Timeout) {
    this.#timeout = timeout
  }

  cancel(): void {
    clearTimeout(this.#timeout)
  }

  unref(): this {
    this.#timeout.unref()
    return this
  }
}

/** The key that these 8 bytes are. */
export function hashKeyOf(bytes: Uint8Array): HashKey {
  const view = new DataView(bytes.buffer, bytes.byteOffset, 8)
  return { low: view.getInt32(0, true), high: view.getInt32(4, true) }
}

/** Each byte as two hex digits. */
const HEX_OF_BYTE: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** A new random id: 128 random bits as 32 hex digits. */
export function randomId(environment: Pick<Environment, 'randomBytes'>): string {
  // For so few bytes, a `Buffer` takes several times as long.
  let id = ''
  for (const byte of environment.randomBytes(16)) id += HEX_OF_BYTE[byte]
  return id
}

/** A time of a clock in ISO 8601, in UTC with milliseconds. */
export function timeText(timeMs: number): string {
  return new Date(timeMs).toISOString()
}
