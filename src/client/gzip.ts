import { ClientError } from './errors.ts'

/** The bytes as one gzip file. */
export async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Blob> {
  const compressed = new Blob([bytes]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Response(compressed, { headers: { 'Content-Type': 'application/gzip' } }).blob()
}

/**
 * What a gzip file (RFC 1952) holds, in the order of its bytes; its length and CRC-32 are checked at the end. Throws what `source` throws, and
 * `integrity_failed`. Returning early ends `source` once it is done with what it waits for.
 */
export async function* inflate(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pulled = new PulledSource(source)
  const compressed = new ReadableStream<Uint8Array<ArrayBuffer>>(pulled, { highWaterMark: 0 })
  const reader = compressed.pipeThrough(new DecompressionStream('gzip')).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } catch (cause) {
    if (pulled.failure !== undefined) throw pulled.failure.error
    throw new ClientError('integrity_failed', `what came is no whole gzip file: ${cause instanceof Error ? cause.message : String(cause)}`, { cause, retryable: true })
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

/** What the source threw is kept here, since on their way through a transformation errors may change. */
class PulledSource {
  failure: { readonly error: unknown } | undefined
  readonly #iterator: AsyncIterator<Uint8Array>

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#iterator = source[Symbol.asyncIterator]()
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    try {
      const { done, value } = await this.#iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(value as Uint8Array<ArrayBuffer>)
    } catch (error) {
      this.failure = { error }
      controller.error(error)
    }
  }

  async cancel(): Promise<void> {
    await this.#iterator.return?.()
  }
}
