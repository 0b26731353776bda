import { StowageError } from '../errors.ts'

/**
 * Exactly `length` bytes (1 or more) of the source, after the first `skip`; then the source is closed. Throws
 * `corrupt_data` when it ends before, so that an answer whose length was promised is never cut short in silence.
 */
export function sliceBytes(
  source: AsyncIterable<Uint8Array>,
  skip: number,
  length: number,
): AsyncIterableIterator<Uint8Array> {
  return new ByteSlice(source[Symbol.asyncIterator](), skip, length)
}

/** No async generator, which would keep chunks that were sent: see `relayed`. */
class ByteSlice implements AsyncIterableIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>
  #toSkip: number
  #left: number

  constructor(source: AsyncIterator<Uint8Array>, skip: number, length: number) {
    this.#source = source
    this.#toSkip = skip
    this.#left = length
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    while (this.#left > 0) {
      const { done, value } = await this.#source.next()
      if (done === true)
        throw new StowageError(
          'corrupt_data',
          `the stored objects ended ${this.#left} bytes before their declared length`,
        )
      const from = Math.min(this.#toSkip, value.length)
      const part = value.subarray(from, from + this.#left)
      this.#toSkip -= from
      this.#left -= part.length
      if (part.length > 0) return { done: false, value: part }
    }
    return await this.return()
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#left = 0
    await this.#source.return?.()
    return { done: true, value: undefined }
  }
}
