const FIRST_CAPACITY = 4_096
const EMPTY = new Uint8Array(0)

/** Gathers pieces into one growing buffer. What was taken is the caller's: the next pieces go into a buffer of their own. */
export class ByteGatherer {
  #buffer: Uint8Array
  #length = 0

  constructor(expectedBytes = 0) {
    this.#buffer = expectedBytes === 0 ? EMPTY : new Uint8Array(expectedBytes)
  }

  get length(): number {
    return this.#length
  }

  add(piece: Uint8Array): void {
    this.#reserve(this.#length + piece.length)
    this.#buffer.set(piece, this.#length)
    this.#length += piece.length
  }

  /** A view of what is held, valid until the next `add`. */
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
    const larger = new Uint8Array(Math.max(bytes, this.#buffer.length * 2, FIRST_CAPACITY))
    larger.set(this.held())
    this.#buffer = larger
  }
}
