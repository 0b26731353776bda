import { StowageError } from '../../errors.ts'

/** Lets so many requests of one run be read at a time. Further ones are refused before their body is read: they may come again, and none waits with a connection. */
export class AtOnce {
  readonly #counts = new Map<string, number>()
  readonly #max: number
  readonly #what: string

  /** `what`: of what there are too many, for the message. */
  constructor(max: number, what: string) {
    this.#max = max
    this.#what = what
  }

  /** Throws `overloaded`, and what `work` throws. */
  async run<T>(runId: string, work: () => Promise<T>): Promise<T> {
    const others = this.#counts.get(runId) ?? 0
    if (others >= this.#max)
      throw new StowageError(
        'overloaded',
        `${others} ${this.#what} of this run are being read; that is the most at a time`,
        { headers: { 'Retry-After': '1' } },
      )
    this.#counts.set(runId, others + 1)
    try {
      return await work()
    } finally {
      const left = (this.#counts.get(runId) ?? 1) - 1
      if (left === 0) this.#counts.delete(runId)
      else this.#counts.set(runId, left)
    }
  }
}
