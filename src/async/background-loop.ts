import { REAL_ENVIRONMENT, type Environment, type Timer } from '../environment.ts'

/** Does the same work again and again, once at a time, until it is stopped. */
export class BackgroundLoop {
  readonly #work: () => Promise<void>
  readonly #intervalMs: number
  readonly #environment: Environment
  #timer: Timer | undefined
  #working: Promise<void> | undefined
  #isWanted = false
  #isStopped = false

  /** `work` must not reject. */
  constructor(work: () => Promise<void>, intervalMs: number, environment: Environment = REAL_ENVIRONMENT) {
    this.#work = work
    this.#intervalMs = intervalMs
    this.#environment = environment
  }

  /** Works now, or once more when the current work is done. */
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
    this.#timer?.cancel()
    this.#timer = this.#environment.setTimer(this.#intervalMs, () => this.soon()).unref()
  }

  /** Resolves when the current work is done. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#working
  }

  async #run(): Promise<void> {
    this.#timer?.cancel()
    while (this.#isWanted && !this.#isStopped) {
      this.#isWanted = false
      await this.#work()
    }
    if (!this.#isStopped) this.#timer = this.#environment.setTimer(this.#intervalMs, () => this.soon()).unref()
  }
}
