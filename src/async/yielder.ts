import type { Environment } from '../environment.ts'

const WORK_MS_MAX = 8

/**
 * Lets the event loop turn whenever one request has kept it for a while. One for each request, shared by all of its
 * stages.
 */
export class Yielder {
  readonly #environment: Environment
  #sinceMs: number

  constructor(environment: Environment) {
    this.#environment = environment
    this.#sinceMs = environment.monotonicMs()
  }

  /** `undefined` while there is time left, so that callers await only when they must. */
  due(): Promise<void> | undefined {
    return this.#environment.monotonicMs() - this.#sinceMs < WORK_MS_MAX ? undefined : this.turn()
  }

  /** Lets it turn in any case: before a step that is long by itself. */
  async turn(): Promise<void> {
    await this.#environment.workTurn()
    this.#sinceMs = this.#environment.monotonicMs()
  }
}
