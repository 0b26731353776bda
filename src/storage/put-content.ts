import { abortable, closeIterator } from '../async/abort.ts'

/**
 * The content of a `put` as a driver reads it. It ends with the signal's reason as soon as that aborts, remembers its
 * error, and can be released.
 */
export class PutContent implements AsyncIterable<Uint8Array> {
  readonly #content: AsyncIterable<Uint8Array>
  readonly #signal: AbortSignal | undefined
  #reader: AsyncGenerator<Uint8Array, void, void> | undefined
  #isStarted = false
  #failure: { readonly error: unknown } | undefined

  constructor(content: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
    this.#content = content
    this.#signal = signal
  }

  /** The error of the producer, or the reason of the abort. */
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
    // A generator that was never started would not pass the return on.
    if (!this.#isStarted) await closeIterator(this.#content[Symbol.asyncIterator]())
    // Not awaited: if a driver gave up while the producer hangs, this would wait for the producer.
    else if (this.#reader) void closeIterator(this.#reader)
  }

  async *#read(): AsyncGenerator<Uint8Array, void, void> {
    this.#isStarted = true
    try {
      yield* abortable(this.#content, this.#signal)
    } catch (error) {
      this.#failure = { error }
      throw error
    }
  }
}
