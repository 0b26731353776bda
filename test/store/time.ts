import { REAL_ENVIRONMENT, type Environment, type Timer } from '../../src/environment.ts'

/** Timers that wait for longer fire when the test lets time pass, others on their own. */
const BY_HAND_MS = 10_000

interface WaitingTimer {
  readonly atMs: number
  readonly act: () => void
}

/** The time of one server, which passes when the test says so: retries wait on the real clock, and intervals do not. */
export class TimeByHand {
  readonly environment: Environment
  readonly #waiting = new Set<WaitingTimer>()
  #passedMs = 0

  constructor() {
    this.environment = {
      ...REAL_ENVIRONMENT,
      monotonicMs: () => this.#nowMs,
      setTimer: (delayMs, act) =>
        delayMs < BY_HAND_MS ? REAL_ENVIRONMENT.setTimer(delayMs, act) : this.#wait(delayMs, act),
    }
  }

  get #nowMs(): number {
    return REAL_ENVIRONMENT.monotonicMs() + this.#passedMs
  }

  /** Time leaps ahead, and every timer that is due then fires, once. */
  pass(ms: number): void {
    this.#passedMs += ms
    for (const timer of this.#waiting) {
      if (timer.atMs > this.#nowMs) continue
      this.#waiting.delete(timer)
      timer.act()
    }
  }

  #wait(delayMs: number, act: () => void): Timer {
    const waiting = { atMs: this.#nowMs + delayMs, act }
    this.#waiting.add(waiting)
    const timer: Timer = { cancel: () => void this.#waiting.delete(waiting), unref: () => timer }
    return timer
  }
}
