import { StowageError } from '../errors.ts'
import type { PlannedSelection, SelectionReadOptions } from '../object/selection.ts'
import { BufferCoalescer } from './buffer-coalescer.ts'
import { GZIP_HEADER, gzipEnd, type GzipOptions } from './gzip.ts'

/**
 * Bytes `start` up to, not including, `end` of the gzip stream of a plan's lines: stored bytes, nothing is computed.
 * Throws `corrupt_data` when the stored bytes end before, so that an answer whose length was promised is never cut short
 * in silence.
 */
export function plannedGzip(
  plan: PlannedSelection,
  start: number,
  end: number,
  options: SelectionReadOptions & Pick<GzipOptions, 'roomBytes' | 'memory'>,
): AsyncIterableIterator<Uint8Array> {
  return new PlannedGzip(plan, start, end, options)
}

/** No async generator, which would keep chunks that were sent: see `relayed`. */
class PlannedGzip implements AsyncIterableIterator<Uint8Array> {
  readonly #gatherer: BufferCoalescer
  #ready: Uint8Array[] = []
  #stored: AsyncIterator<Uint8Array> | undefined
  #storedBytesLeft = 0
  readonly #trailer: Uint8Array

  constructor(
    plan: PlannedSelection,
    start: number,
    end: number,
    options: SelectionReadOptions & Pick<GzipOptions, 'roomBytes' | 'memory'>,
  ) {
    const headBytes = GZIP_HEADER.length
    const storedEnd = headBytes + plan.storedBytes
    this.#gatherer = new BufferCoalescer(options.roomBytes, options.memory)
    this.#gatherer.add(GZIP_HEADER.subarray(start, end))
    if (start < storedEnd && end > headBytes) {
      const [from, to] = [Math.max(0, start - headBytes), Math.min(plan.storedBytes, end - headBytes)]
      this.#stored = plan.stored(from, to, options)[Symbol.asyncIterator]()
      this.#storedBytesLeft = to - from
    }
    const trailer = gzipEnd(plan.crc32, plan.rawBytes)
    this.#trailer = trailer.subarray(Math.max(0, start - storedEnd), Math.max(0, end - storedEnd))
    if (this.#stored === undefined) this.#gatherer.add(this.#trailer)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    while (this.#ready.length === 0 && this.#stored !== undefined) await this.#gather(this.#stored)
    if (this.#ready.length === 0) this.#ready = this.#gatherer.takeAll()
    const buffer = this.#ready.shift()
    return buffer === undefined ? { done: true, value: undefined } : { done: false, value: buffer }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    const stored = this.#stored
    this.#stored = undefined
    this.#gatherer.takeAll()
    this.#ready = []
    await stored?.return?.()
    return { done: true, value: undefined }
  }

  async #gather(stored: AsyncIterator<Uint8Array>): Promise<void> {
    const { done, value } = await stored.next()
    if (done !== true) {
      this.#storedBytesLeft -= value.length
      this.#gatherer.add(value)
      this.#ready = this.#gatherer.take()
      return
    }
    this.#stored = undefined
    if (this.#storedBytesLeft > 0)
      throw new StowageError(
        'corrupt_data',
        `the stored objects ended ${this.#storedBytesLeft} bytes before their declared length`,
      )
    this.#gatherer.add(this.#trailer)
  }
}
