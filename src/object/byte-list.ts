import type { BufferPool } from '../memory/buffer-pool.ts'

const SHORT_BYTES = 48
const CAPACITY_BYTES_MIN = 16
const NOTHING = new Uint8Array(0)

/** Where the memory of lists comes from, and where it goes. */
type Lender = Pick<BufferPool, 'takeAny' | 'giveBack'>

const SYSTEM: Lender = { takeAny: (sizeBytes) => Buffer.allocUnsafeSlow(sizeBytes), giveBack: () => undefined }

/** Bytes that are appended piece by piece to one growing buffer. */
export class ByteList {
  readonly #lender: Lender
  readonly #capacityBytesAtFirst: number
  #bytes: Uint8Array = NOTHING
  #length = 0

  /** The buffer is made with the first bytes: many lists get none. */
  constructor(capacityBytes: number, lender: Lender = SYSTEM) {
    this.#lender = lender
    this.#capacityBytesAtFirst = Math.max(CAPACITY_BYTES_MIN, capacityBytes)
  }

  get length(): number {
    return this.#length
  }

  get capacityBytes(): number {
    return this.#bytes.length
  }

  /** Makes room for this many more bytes, so that adding them moves nothing. */
  reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#bytes.length) return
    const larger = this.#lender.takeAny(Math.max(needed, this.#bytes.length * 2, this.#capacityBytesAtFirst))
    larger.set(this.view())
    this.#lender.giveBack(this.#bytes)
    this.#bytes = larger
  }

  push(byte: number): void {
    this.reserve(1)
    this.#bytes[this.#length++] = byte
  }

  append(source: Uint8Array, start: number = 0, end: number = source.length): void {
    this.reserve(end - start)
    const bytes = this.#bytes
    if (end - start > SHORT_BYTES) bytes.set(source.subarray(start, end), this.#length)
    else for (let from = start, to = this.#length; from < end; from++, to++) bytes[to] = source[from]
    this.#length += end - start
  }

  clear(): void {
    this.#length = 0
  }

  /** The current contents, without a copy. The list must not be changed while the view is used. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  /** The contents, of which the lender is to have back what nobody else needs. The list is not used after that. */
  detach(): Uint8Array {
    this.#lender.giveBack(this.#bytes.subarray(this.#length))
    return this.view()
  }
}
