import { StowageError } from '../../../errors.ts'

/**
 * The result of an asynchronous method of the context. It knows whether the function awaits it. If nothing awaits it
 * and it fails, the run receives the failure rather than the process, which an unhandled rejection would reach.
 */
class ContextCall<T> extends Promise<T> {
  isHeeded = false

  /** `then` returns an ordinary promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a promise has it already; this one also notes that it is used
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isHeeded = true
    return super.then(onFulfilled, onRejected)
  }
}

/** The calls of a run that are under way. They are waited for at its end; later ones are refused. */
export class PendingCalls {
  readonly #open = new Set<Promise<void>>()
  readonly #failed: { readonly call: ContextCall<unknown>; readonly error: unknown }[] = []
  #isClosed = false

  /** Throws `conflict` once the run has ended. */
  checkOpen(name: string): void {
    if (this.#isClosed) throw new StowageError('conflict', `the run has ended: ${name} cannot be called any more`)
  }

  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const call = new ContextCall<T>((resolve, reject) => {
      this.checkOpen(name)
      work().then(resolve, reject)
    })
    const settled: Promise<void> = Promise.prototype.then
      .call(call, undefined, (error: unknown) => void this.#failed.push({ call, error }))
      .then(() => void this.#open.delete(settled))
    this.#open.add(settled)
    return call
  }

  /** Resolves when nothing is under way. */
  async drain(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open)
  }

  close(): void {
    this.#isClosed = true
  }

  /** A failure that nothing awaited. */
  unheededFailure(): { readonly error: unknown } | undefined {
    return this.#failed.find(({ call }) => !call.isHeeded)
  }
}
