import { StowageError } from '../../errors.ts'

/**
 * Lets work on many things go on when one of them is damaged; the first error is thrown in the end. A storage that
 * fails ends the work at once.
 */
export class ErrorCollector {
  readonly #errors: unknown[] = []

  async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof StowageError) || error.isRetryable) throw error
      this.#errors.push(error)
    }
  }

  /** Throws the collected errors. */
  check(): void {
    if (this.#errors.length > 0) throw this.#errors[0]
  }
}
