import { abortable, closeIterator } from '../async/abort.ts'

/** The content of a `put` as a driver reads it: it ends with the signal's reason as soon as that aborts, remembers what it threw, and can be let go. */
export class PutContent implements AsyncIterable<Uint8Array> {
  readonly #content: AsyncIterable<Uint8Array>
  readonly #signal: AbortSignal | undefined
  #reader: AsyncGenerator<Uint8Array, void, void> | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(content: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
    this.#content = content
    this.#signal = signal
  }

  /** What the producer threw, or the reason of the abort. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, void, void> {
    if (this.#reader) throw new TypeError('the content of a blob can be read only once')
    this.#reader = this.#read()
    return this.#reader
  }

  /** Lets go of content that will not be read any further, as a loop that is left early does. */
  async release(): Promise<void> {
    if (!this.#reader) await closeIterator(this.#content[Symbol.asyncIterator]())
    // Not awaited: where a driver gave up by itself while the producer hangs, this waits for the producer.
    else void closeIterator(this.#reader)
  }

  async *#read(): AsyncGenerator<Uint8Array, void, void> {
    try {
      yield* abortable(this.#content, this.#signal)
    } catch (error) {
      this.#failure = { error }
      throw error
    }
  }
}
