import { StowageError } from '../errors.ts'

/**
 * Limits the concurrent operations of one run or principal. Further ones are refused: they may be retried, and none
 * waits with a connection.
 */
export class ConcurrencyLimit {
  readonly #counts = new Map<string, number>()
  readonly #max: number
  readonly #what: string

  /** `what`: the subject of the message, such as `reports of this run are being read`. */
  constructor(max: number, what: string) {
    this.#max = max
    this.#what = what
  }

  /** Throws `overloaded`, and the errors of `work`. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const leave = this.enter(key)
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /** For operations that end later: call the returned function then, once. Throws `overloaded`. */
  enter(key: string): () => void {
    const others = this.#counts.get(key) ?? 0
    if (others >= this.#max)
      throw new StowageError('overloaded', `${others} ${this.#what}, the limit`, { headers: { 'Retry-After': '1' } })
    this.#counts.set(key, others + 1)
    return () => {
      const left = (this.#counts.get(key) ?? 1) - 1
      if (left === 0) this.#counts.delete(key)
      else this.#counts.set(key, left)
    }
  }
}
