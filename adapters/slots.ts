/** Syncs at once of one backend: each holds a thread of the pool, which has four, and reads want some of them too. */
export const SYNCS_MAX = 2

/** Runs at most `max` things at once, first come, first served. */
export class Slots {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(max: number) {
    this.#free = max
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
