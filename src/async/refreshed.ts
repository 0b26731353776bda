import { REAL_ENVIRONMENT } from '../environment.ts'

/** A value that is read again when it is older than `freshMs`. Concurrent callers share one reading. */
export class Refreshed<T> {
  readonly #read: () => Promise<T>
  readonly #freshMs: number
  #known: Promise<T> | undefined
  #readAtMs = 0

  constructor(read: () => Promise<T>, freshMs: number) {
    this.#read = read
    this.#freshMs = freshMs
  }

  /** Throws the error of the reading; the next call reads again then. */
  async get(): Promise<T> {
    if (this.#known === undefined || REAL_ENVIRONMENT.monotonicMs() - this.#readAtMs > this.#freshMs) {
      this.#readAtMs = REAL_ENVIRONMENT.monotonicMs()
      this.#known = this.#read()
    }
    const known = this.#known
    try {
      return await known
    } catch (error) {
      if (this.#known === known) this.#known = undefined
      throw error
    }
  }
}
