import { StowageError } from '../errors.ts'
import { LINGER_IDLE_MS, LINGER_MS_MAX, lingerBytesMax } from './linger.ts'
import { waitFor } from './progress.ts'

export interface PulledStreamOptions {
  readonly signal: AbortSignal
  readonly abort: (reason: Error) => void
  /** Called exactly once, when the stream is over in whatever way. */
  readonly free: () => void
  /** Told of what the chunks threw. */
  readonly failed: (thrown: unknown) => void
  readonly stallTimeoutMs: number
}

/** A stream that is made only as fast as it is pulled. Cancelling it frees everything at once, and so does a reader that stops pulling. */
export function pulledStream(chunks: AsyncIterable<Uint8Array>, options: PulledStreamOptions): ReadableStream<Uint8Array> {
  const source = new PulledSource(chunks, options)
  return new ReadableStream<Uint8Array>(source, { highWaterMark: 0 })
}

class PulledSource {
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #options: PulledStreamOptions
  #stall: NodeJS.Timeout | undefined
  #over = false
  #onAbort: () => void = () => undefined

  constructor(chunks: AsyncIterable<Uint8Array>, options: PulledStreamOptions) {
    this.#iterator = chunks[Symbol.asyncIterator]()
    this.#options = options
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { signal } = this.#options
    this.#onAbort = (): void => {
      controller.error(signal.reason)
      this.#finish()
    }
    signal.addEventListener('abort', this.#onAbort)
    this.#watch()
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    clearTimeout(this.#stall)
    try {
      const next = await this.#iterator.next()
      if (this.#over) return
      if (next.done === true) {
        controller.close()
        this.#finish()
        return
      }
      controller.enqueue(next.value)
      this.#watch()
    } catch (thrown) {
      if (this.#over) return
      this.#options.failed(thrown)
      controller.error(thrown)
      this.#finish()
    }
  }

  cancel(): void {
    this.#options.abort(new StowageError('request_aborted', 'the client went away before the answer was complete'))
  }

  #watch(): void {
    const { abort, stallTimeoutMs } = this.#options
    this.#stall = setTimeout(() => abort(new StowageError('request_aborted', `nothing was read for ${stallTimeoutMs} ms`)), stallTimeoutMs)
  }

  #finish(): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#stall)
    const { signal, failed, free } = this.#options
    signal.removeEventListener('abort', this.#onAbort)
    Promise.resolve(this.#iterator.return?.()).catch(failed).finally(free)
  }
}

export interface ReadStreamOptions {
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  readonly requestBytesMax: number
}

/**
 * What arrives, in the pieces in which it arrives. When its consumer stops early, what still comes is read and thrown away within bounds, since
 * cancelling the stream would, on hosts that stand on Node's sockets, cut the connection before the answer is out.
 */
export async function* readStream(stream: ReadableStream<Uint8Array> | null, options: ReadStreamOptions): AsyncGenerator<Uint8Array, void, undefined> {
  if (stream === null) return
  const reader = stream.getReader()
  let bytesRead = 0
  let ended = false
  try {
    for (;;) {
      const chunk = await readWithin(reader, options.signal, options.stallTimeoutMs)
      ended = chunk === undefined
      if (chunk === undefined) return
      bytesRead += chunk.length
      yield chunk
    }
  } finally {
    if (!ended) void discard(reader, lingerBytesMax(options.requestBytesMax) - bytesRead, options.signal).catch(() => undefined)
  }
}

async function discard(reader: ReadableStreamDefaultReader<Uint8Array>, bytesMax: number, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + LINGER_MS_MAX
  try {
    for (let bytes = 0; bytes < bytesMax && performance.now() < deadlineMs; ) {
      const chunk = await readWithin(reader, signal, LINGER_IDLE_MS)
      if (chunk === undefined) return
      bytes += chunk.length
    }
  } finally {
    await reader.cancel()
  }
}

async function readWithin(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal, timeoutMs: number): Promise<Uint8Array | undefined> {
  let chunk: Uint8Array | undefined
  await waitFor(
    (happened) => {
      reader.read().then(
        (next) => {
          chunk = next.value
          happened()
        },
        (cause: unknown) => happened(new StowageError('request_aborted', 'the body broke off before all of it had come', { cause })),
      )
      return () => undefined
    },
    { signal, timeoutMs, late: () => new StowageError('request_aborted', `no byte of the body came for ${timeoutMs} ms`) },
  )
  return chunk
}
