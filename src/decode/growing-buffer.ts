const FIRST_CAPACITY = 4_096
const EMPTY = new Uint8Array(0)

/**
 * Gathers pieces into one growing buffer. What was taken is the caller's: the next pieces go into a buffer of their
 * own.
 */
export class GrowingBuffer {
  readonly #bytesMax: number
  #buffer: Uint8Array
  #length = 0

  /** With `bytesMax` it does not grow ahead beyond that. */
  constructor({
    expectedBytes = 0,
    bytesMax = Infinity,
  }: { expectedBytes?: number | undefined; bytesMax?: number } = {}) {
    this.#buffer = expectedBytes === 0 ? EMPTY : new Uint8Array(expectedBytes)
    this.#bytesMax = bytesMax
  }

  get length(): number {
    return this.#length
  }

  /** Bytes that it holds, used or not. */
  get capacityBytes(): number {
    return this.#buffer.length
  }

  /** The bytes that `add` would have to allocate for so many more bytes: 0 while there is room. */
  growthFor(bytes: number): number {
    return this.#length + bytes <= this.#buffer.length ? 0 : this.#capacityFor(this.#length + bytes)
  }

  add(piece: Uint8Array): void {
    this.#reserve(this.#length + piece.length)
    this.#buffer.set(piece, this.#length)
    this.#length += piece.length
  }

  /** A view of the contents, valid until the next `add`. */
  held(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  /** Everything gathered, with one last piece; the gatherer is empty again. */
  take(lastPiece: Uint8Array = EMPTY): Uint8Array {
    this.add(lastPiece)
    const whole = this.held()
    this.#buffer = EMPTY
    this.#length = 0
    return whole
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.length) return
    const larger = new Uint8Array(this.#capacityFor(bytes))
    larger.set(this.held())
    this.#buffer = larger
  }

  #capacityFor(bytes: number): number {
    const doubled = Math.min(this.#buffer.length * 2, this.#bytesMax)
    return Math.max(bytes, doubled, FIRST_CAPACITY)
  }
}
