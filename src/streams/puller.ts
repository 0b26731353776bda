import type { Readable } from 'node:stream'
import { type Done, notifyWhenSettled } from './handoff.ts'

/** Makes the source of a stream. The signal aborts when the stream is destroyed. */
export type OpenSource<T> = (signal: AbortSignal) => AsyncIterable<readonly T[]>

/**
 * Reads an iterable of batches for a stream: one batch for each call of `_read`, and none after the stream was
 * destroyed.
 */
export class Puller<T> {
  readonly #stream: Readable
  readonly #open: OpenSource<T>
  readonly #onEnd: () => void
  readonly #controller = new AbortController()
  #iterator: AsyncIterator<readonly T[]> | undefined

  /** `onEnd` is called when the iterable has ended without an error. */
  constructor(stream: Readable, open: OpenSource<T>, onEnd: () => void = () => undefined) {
    this.#stream = stream
    this.#open = open
    this.#onEnd = onEnd
  }

  /** For `_read`: pushes the next batch, or the end. */
  pull(): void {
    this.#pushNext().catch((error: Error) => this.#stream.destroy(error))
  }

  /** For `_destroy`: ends the iterable and waits until it has freed its resources. */
  close(reason: Error | null, done: Done): void {
    this.#controller.abort(reason ?? new Error('the stream was destroyed'))
    notifyWhenSettled(this.#iterator?.return?.() ?? Promise.resolve(), (thrown) => {
      // The error is the reason of the abort, which is known, or an error while freeing.
      done(reason ?? (thrown === this.#controller.signal.reason ? null : thrown))
    })
  }

  async #pushNext(): Promise<void> {
    this.#iterator ??= this.#open(this.#controller.signal)[Symbol.asyncIterator]()
    for (;;) {
      const step = await this.#iterator.next()
      if (this.#stream.destroyed) return
      if (step.done === true) {
        this.#stream.push(null)
        this.#onEnd()
        return
      }
      for (const item of step.value) this.#stream.push(item)
      if (step.value.length > 0) return
    }
  }
}
