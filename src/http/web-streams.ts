import { StowageError } from '../errors.ts'
import { Timeout } from './timeout.ts'

export interface PulledStreamOptions {
  readonly signal: AbortSignal
  readonly abort: (reason: Error) => void
  /** Called exactly once, when the stream is over in whatever way. */
  readonly free: () => void
  /** Receives the errors that the chunks throw. */
  readonly failed: (thrown: unknown) => void
  readonly stallTimeoutMs: number
  /** Called with each chunk that was passed on, as a copy. */
  readonly sent?: ((chunk: Uint8Array) => void) | undefined
}

/**
 * A stream that is made only as fast as it is pulled. Cancelling it frees everything at once, and so does a reader that
 * stops pulling.
 */
export function pulledStream(
  chunks: AsyncIterable<Uint8Array>,
  options: PulledStreamOptions,
): ReadableStream<Uint8Array> {
  const source = new PulledSource(chunks, options)
  return new ReadableStream<Uint8Array>(source, { highWaterMark: 0 })
}

class PulledSource {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #options: PulledStreamOptions
  readonly #stalled: Timeout
  #over = false
  #onAbort: () => void = () => undefined

  constructor(chunks: AsyncIterable<Uint8Array>, options: PulledStreamOptions) {
    this.#iterator = chunks[Symbol.asyncIterator]()
    this.#options = options
    const { abort, stallTimeoutMs } = options
    this.#stalled = new Timeout(stallTimeoutMs, () =>
      abort(new StowageError('request_aborted', `nothing was read for ${stallTimeoutMs} ms`)),
    )
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { signal } = this.#options
    this.#onAbort = (): void => {
      controller.error(signal.reason)
      this.#finish()
    }
    signal.addEventListener('abort', this.#onAbort)
    this.#stalled.start()
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#stalled.cancel()
    try {
      const next = await this.#iterator.next()
      if (this.#over) return
      if (next.done === true) {
        controller.close()
        this.#finish()
        return
      }
      // A copy: a host may transfer what it gets, and memory that is lent or mapped cannot be transferred.
      controller.enqueue(new Uint8Array(next.value))
      this.#options.sent?.(next.value)
      this.#stalled.start()
    } catch (thrown) {
      if (this.#over) return
      this.#options.failed(thrown)
      controller.error(thrown)
      this.#finish()
    }
  }

  cancel(): void {
    this.#options.abort(new StowageError('request_aborted', 'the client disconnected before the response was complete'))
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    this.#stalled.cancel()
    const { signal, failed, free } = this.#options
    signal.removeEventListener('abort', this.#onAbort)
    Promise.resolve(this.#iterator.return?.()).catch(failed).finally(free)
  }
}
