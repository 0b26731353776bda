import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'

/** How long responses may keep one turn of the event loop busy. A turn costs a few tens of microseconds. */
const SHARE_MS = 4

/**
 * The share of one turn of the event loop that all responses of a service may take. Node accepts one connection in a
 * turn: if each of 500 responses makes a piece in every turn, a turn takes half a second, and the last of 20 new
 * connections is seen after ten. With this bound, a response that finds the share used up continues in a later turn,
 * first come, first served, so turns stay short with any number of responses.
 */
export class EventLoopShare {
  readonly #environment: Environment
  readonly #waiting = new Set<() => void>()
  #isServing = false
  #turnBeganMs: number | undefined

  constructor(environment: Environment = REAL_ENVIRONMENT) {
    this.#environment = environment
  }

  /** The same chunks, each asked for in a turn that has time for it. */
  async *paced<T>(chunks: AsyncIterable<T>): AsyncGenerator<T> {
    await this.#turn()
    for await (const chunk of chunks) {
      yield chunk
      await this.#turn()
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve)
      if (!this.#isServing) void this.#serve()
    })
  }

  /** One after the other: a tick comes only when all immediate work of the one before is done. */
  async #serve(): Promise<void> {
    this.#isServing = true
    for (const go of this.#waiting) {
      if (this.#isUsedUp()) await this.#environment.nextTurn()
      this.#waiting.delete(go)
      go()
      await new Promise<void>((resolve) => process.nextTick(resolve))
    }
    this.#isServing = false
  }

  #isUsedUp(): boolean {
    if (this.#turnBeganMs !== undefined) return this.#environment.monotonicMs() - this.#turnBeganMs > SHARE_MS
    this.#turnBeganMs = this.#environment.monotonicMs()
    void this.#environment.nextTurn().then(() => (this.#turnBeganMs = undefined))
    return false
  }
}
