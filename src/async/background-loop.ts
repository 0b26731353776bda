/** Does the same work again and again, once at a time, until it is stopped. */
export class BackgroundLoop {
  readonly #work: () => Promise<void>
  readonly #intervalMs: number
  #timer: NodeJS.Timeout | undefined
  #working: Promise<void> | undefined
  #isWanted = false
  #isStopped = false

  /** `work` must not reject. */
  constructor(work: () => Promise<void>, intervalMs: number) {
    this.#work = work
    this.#intervalMs = intervalMs
  }

  /** Works now, or once more when what goes on is done. */
  soon(): void {
    if (this.#isStopped) return
    this.#isWanted = true
    this.#working ??= this.#run().finally(() => {
      this.#working = undefined
    })
  }

  /** Works for the first time after one interval. */
  later(): void {
    if (this.#isStopped || this.#working !== undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.soon(), this.#intervalMs).unref()
  }

  /** Resolves when the work that goes on is done. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#working
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer)
    while (this.#isWanted && !this.#isStopped) {
      this.#isWanted = false
      await this.#work()
    }
    if (!this.#isStopped) this.#timer = setTimeout(() => this.soon(), this.#intervalMs).unref()
  }
}
