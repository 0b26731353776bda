import { StowageError } from '../errors.ts'
import { BodyRate } from './body-rate.ts'
import { parseLength, type RequestBody } from './exchange.ts'
import { CLOSE_DELAY_MS, LINGER_IDLE_MS, LINGER_MS_MAX, drainedBytesMax } from './linger.ts'
import { bodyConsumed } from './parsed-body.ts'
import { waitFor } from './timeout.ts'

export interface WebBodyOptions {
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  readonly bodyBytesPerSecondMin: number
  readonly requestBytesMax: number
}

/** The body of a fetch-style request, read by pulling. Whoever stops reading leaves the rest to `takeRest`. */
export class WebBody {
  readonly #request: Request
  readonly #options: WebBodyOptions
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #bytesRead = 0
  #ended = false

  constructor(request: Request, options: WebBodyOptions) {
    this.#request = request
    this.#options = options
  }

  asRequestBody(): RequestBody {
    const { headers } = this.#request
    const chunks = (): AsyncIterable<Uint8Array> => this.#chunks()
    return {
      type: headers.get('content-type') ?? undefined,
      encoding: headers.get('content-encoding') ?? undefined,
      length: parseLength(headers.get('content-length')),
      bytes: chunks,
      values: chunks,
    }
  }

  /**
   * Closing while the client sends resets the connection, and most clients then never read the response. So before the
   * host gets a refusal, further bytes are read and discarded within bounds. A client that waits for `100 Continue` has
   * not begun.
   */
  async takeRest(): Promise<void> {
    const { signal, requestBytesMax } = this.#options
    if (this.#ended || signal.aborted || (this.#bytesRead === 0 && this.#request.headers.has('expect'))) return
    const reader = this.#open()
    if (reader === undefined) return
    const bytesReadMax = drainedBytesMax(requestBytesMax)
    const deadlineMs = performance.now() + LINGER_MS_MAX
    try {
      while (!this.#ended && this.#bytesRead < bytesReadMax && performance.now() < deadlineMs)
        await this.#read(reader, LINGER_IDLE_MS)
    } catch (error) {
      if (!(error instanceof StowageError)) throw error
    }
    // On hosts based on Node's sockets this cuts the connection, so the response goes first.
    if (!this.#ended) setTimeout(() => void reader.cancel().catch(() => undefined), CLOSE_DELAY_MS).unref()
  }

  async *#chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#request.bodyUsed) throw bodyConsumed()
    const reader = this.#open()
    const rate = new BodyRate(this.#options.bodyBytesPerSecondMin)
    while (reader !== undefined) {
      const beganAtMs = performance.now()
      const chunk = await this.#read(reader, this.#options.stallTimeoutMs)
      if (chunk === undefined) return
      rate.waited(performance.now() - beganAtMs)
      rate.came(chunk.length)
      yield chunk
    }
  }

  #open(): ReadableStreamDefaultReader<Uint8Array> | undefined {
    const { body, bodyUsed } = this.#request
    if (this.#reader === undefined && body !== null && !bodyUsed && !body.locked) this.#reader = body.getReader()
    return this.#reader
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>, timeoutMs: number): Promise<Uint8Array | undefined> {
    const chunk = await readWithin(reader, this.#options.signal, timeoutMs)
    this.#ended = chunk === undefined
    this.#bytesRead += chunk?.length ?? 0
    return chunk
  }
}

async function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<Uint8Array | undefined> {
  let chunk: Uint8Array | undefined
  await waitFor(
    (happened) => {
      reader.read().then(
        (next) => {
          chunk = next.value
          happened()
        },
        (cause: unknown) =>
          happened(new StowageError('request_aborted', 'the body ended before it was complete', { cause })),
      )
      return () => undefined
    },
    {
      signal,
      timeoutMs,
      late: () => new StowageError('request_aborted', `no byte of the body arrived for ${timeoutMs} ms`),
    },
  )
  return chunk
}
