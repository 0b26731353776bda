import { orAborted } from '../../async/abort.ts'
import type { Environment } from '../../environment.ts'

/** Shorter stretches of work are not worth a timer. */
const WORK_MS_MIN = 5
/** The longest rest at a time: what was slow may have waited rather than worked. */
const REST_MS_MAX = 2_000

/** Bounds the share of time that some background work takes: after each stretch of work it rests. */
export class Pace {
  readonly #environment: Environment
  readonly #restFactor: number
  #sinceMs: number

  /** `share` is above 0 and at most 1; 1 never rests. */
  constructor(environment: Environment, share: number) {
    this.#environment = environment
    this.#restFactor = 1 / share - 1
    this.#sinceMs = environment.monotonicMs()
  }

  /** Call it between steps. Rejects with the signal's reason. */
  async rest(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const workedMs = this.#environment.monotonicMs() - this.#sinceMs
    if (this.#restFactor === 0 || workedMs < WORK_MS_MIN) return
    await this.#wait(Math.min(REST_MS_MAX, workedMs * this.#restFactor), signal)
    this.#sinceMs = this.#environment.monotonicMs()
  }

  async *paced<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
    for await (const item of items) {
      yield item
      await this.rest(signal)
    }
  }

  async #wait(waitMs: number, signal: AbortSignal): Promise<void> {
    let cancel = (): void => undefined
    const waited = new Promise<void>((resolve) => {
      const timer = this.#environment.setTimer(waitMs, resolve)
      cancel = () => timer.cancel()
    })
    try {
      await orAborted(waited, signal)
    } finally {
      cancel()
    }
  }
}
