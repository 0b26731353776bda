import { hashKeyOf, type Environment, type HashKey, type Timer } from '../environment.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'

/** The start of virtual time: 2030-01-01T00:00:00Z. */
export const EPOCH_MS: number = Date.UTC(2030, 0, 1)
/** The clocks of two machines differ by at most twice this. */
const CLOCK_SKEW_MS_MAX = 120_000

/**
 * A process of a simulated machine, as the environment of the service that runs in it. Once it is killed nothing in it
 * continues: its timers do not fire, its turns do not come, and its calls to the storage are not answered.
 */
export class SimulatedProcess implements Environment {
  /** The name of the process. */
  readonly name: string
  /** The number of processors that the process sees. */
  readonly parallelism = 2
  /** Compression runs inline, so that the order of steps follows from the seed. */
  readonly usesThreadPool = false
  /** The key of the set hashes. */
  readonly hashKey: HashKey
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #skewMs: number
  #isAlive = true
  #hasSlept = false
  #wakesAtMs = 0
  #sleepsAfter: { readonly call: string; readonly durationMs: number } | undefined

  constructor(name: string, scheduler: Scheduler, random: Random) {
    this.name = name
    this.#scheduler = scheduler
    this.#random = random
    this.#skewMs = random.between(-CLOCK_SKEW_MS_MAX, CLOCK_SKEW_MS_MAX)
    this.hashKey = hashKeyOf(random.bytes(8))
  }

  /** Whether it was not killed. */
  get isAlive(): boolean {
    return this.#isAlive
  }

  /** Ends the process: none of its timers and calls come back. */
  kill(): void {
    this.#isAlive = false
  }

  /** Whether it ever slept. */
  get hasSlept(): boolean {
    return this.#hasSlept
  }

  /** Nothing in it continues for so long, as in a machine that is suspended; then everything that is due does. */
  sleep(durationMs: number): void {
    this.#hasSlept = true
    this.#wakesAtMs = Math.max(this.#wakesAtMs, this.#scheduler.nowMs + durationMs)
  }

  /** Sleeps when its next call to the storage whose name begins so has taken effect, and before it is answered. */
  sleepAfter(call: string, durationMs: number): void {
    this.#sleepsAfter = { call, durationMs }
  }

  /** Its call to the storage took effect. */
  callTookEffect(call: string): void {
    if (this.#sleepsAfter === undefined || !call.startsWith(this.#sleepsAfter.call)) return
    this.sleep(this.#sleepsAfter.durationMs)
    this.#sleepsAfter = undefined
  }

  /** Acts at once, or when the process wakes. */
  whenAwake(act: () => void | Promise<void>): void | Promise<void> {
    const leftMs = this.#wakesAtMs - this.#scheduler.nowMs
    if (leftMs <= 0) return act()
    this.#scheduler.schedule(leftMs, `${this.name} wakes`, () => this.whenAwake(act))
  }

  /** The wall clock, which follows the virtual time. */
  now(): number {
    return Math.floor(EPOCH_MS + this.#scheduler.look() + this.#skewMs)
  }

  /** The virtual time. */
  monotonicMs(): number {
    return this.#scheduler.look()
  }

  /** Calls `act` after `delayMs` of virtual time. */
  setTimer(delayMs: number, act: () => void): Timer {
    let isCancelled = false
    const step = this.#scheduler.schedule(delayMs, `timer ${this.name}`, () =>
      this.whenAwake(() => {
        if (this.#isAlive && !isCancelled) act()
      }),
    )
    const cancel = (): void => {
      isCancelled = true
      step.cancel()
    }
    const timer: Timer = { cancel, unref: () => timer }
    return timer
  }

  /** Resolves in a later step of the scheduler. */
  nextTurn(): Promise<void> {
    return new Promise((resolve) => {
      this.#scheduler.schedule(0, `turn ${this.name}`, () =>
        this.whenAwake(() => {
          if (this.#isAlive) resolve()
        }),
      )
    })
  }

  /** As `nextTurn`, so that the seed also chooses the order of long computations. */
  workTurn(): Promise<void> {
    return this.nextTurn()
  }

  /** Random bytes from the seed. */
  randomBytes(sizeBytes: number): Uint8Array {
    return this.#random.bytes(sizeBytes)
  }
}
