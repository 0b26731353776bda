import { setImmediate } from 'node:timers/promises'

const WORK_MS_MAX = 8

/** Lets the event loop turn whenever one request has kept it for a while. One for each request, shared by all of its stages. */
export class Yielder {
  #sinceMs = performance.now()

  /** `undefined` while there is time left, so that callers await only when they must. */
  due(): Promise<void> | undefined {
    return performance.now() - this.#sinceMs < WORK_MS_MAX ? undefined : this.turn()
  }

  /** Lets it turn in any case: before a step that is long by itself. */
  async turn(): Promise<void> {
    await setImmediate()
    this.#sinceMs = performance.now()
  }
}
