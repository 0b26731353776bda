import { ClientError } from './errors.ts'

/** The pieces, one after the other, as one gzip file. Each is asked for when the one before was taken. */
export async function gzip(pieces: Iterable<Uint8Array<ArrayBuffer>>): Promise<Blob> {
  const { readable, writable } = new CompressionStream('gzip')
  new Pump(each(pieces), writable.getWriter()).run().catch(() => undefined)
  return new Response(readable, { headers: { 'Content-Type': 'application/gzip' } }).blob()
}

async function* each<T>(pieces: Iterable<T>): AsyncGenerator<T> {
  yield* pieces
}

/**
 * The contents of a gzip file (RFC 1952), in the order of its bytes; its length and CRC-32 are checked at the end.
 * Throws the errors of `source`, and `integrity_failed`. Returning early ends `source` once its current step is done.
 */
export async function* inflate(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { readable, writable } = new DecompressionStream('gzip')
  const pump = new Pump(source, writable.getWriter())
  const reader = readable.getReader()
  pump.run().catch(() => undefined)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } catch (cause) {
    if (pump.failure !== undefined) throw pump.failure.error
    throw new ClientError(
      'integrity_failed',
      `the response is not a complete gzip file: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause, isRetryable: true },
    )
  } finally {
    reader.cancel().catch(() => undefined)
    pump.stop()
  }
}

/**
 * Writes the source's chunks one after the other, each when the one before is taken: on Node 20, `pipeThrough` reads on
 * however little is taken. What the source threw is kept, since on its way through a transformation an error may
 * change.
 */
class Pump {
  failure: { readonly error: unknown } | undefined
  readonly #iterator: AsyncIterator<Uint8Array>
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>

  constructor(source: AsyncIterable<Uint8Array>, writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>) {
    this.#iterator = source[Symbol.asyncIterator]()
    this.#writer = writer
  }

  async run(): Promise<void> {
    this.#writer.closed.catch(() => undefined)
    for (;;) {
      const next = await this.#next()
      if (next === undefined) return
      if (next.done === true) return this.#writer.close()
      await this.#writer.ready
      await this.#writer.write(next.value as Uint8Array<ArrayBuffer>)
    }
  }

  stop(): void {
    this.#iterator.return?.().catch(() => undefined)
    this.#writer.abort().catch(() => undefined)
  }

  async #next(): Promise<IteratorResult<Uint8Array> | undefined> {
    try {
      return await this.#iterator.next()
    } catch (error) {
      this.failure = { error }
      await this.#writer.abort(error)
      return undefined
    }
  }
}
