/** A set of small numbers, one bit each, least significant bit first. */
export class Bitmap {
  readonly bytes: Uint8Array
  #count: number

  constructor(bytes: Uint8Array, count: number = countBits(bytes)) {
    this.bytes = bytes
    this.#count = count
  }

  static empty(size: number): Bitmap {
    return new Bitmap(new Uint8Array((size + 7) >> 3), 0)
  }

  static full(size: number): Bitmap {
    const bytes = new Uint8Array((size + 7) >> 3).fill(0xff)
    if (size & 7) bytes[bytes.length - 1] = (1 << (size & 7)) - 1
    return new Bitmap(bytes, size)
  }

  /** The size of the set. */
  get count(): number {
    return this.#count
  }

  has(index: number): boolean {
    return (this.bytes[index >> 3] & (1 << (index & 7))) !== 0
  }

  /** Whether the number was new. */
  add(index: number): boolean {
    const bit = 1 << (index & 7)
    const held = this.bytes[index >> 3]
    if (held & bit) return false
    this.bytes[index >> 3] = held | bit
    this.#count++
    return true
  }

  delete(index: number): void {
    const bit = 1 << (index & 7)
    if (!(this.bytes[index >> 3] & bit)) return
    this.bytes[index >> 3] &= ~bit
    this.#count--
  }

  /** Numbers from `start` up to, not including, `end` that are in the set. */
  countBetween(start: number, end: number): number {
    let count = 0
    let index = start
    while (index < end && index & 7) count += this.has(index++) ? 1 : 0
    while (index + 8 <= end) {
      count += BITS_IN_BYTE[this.bytes[index >> 3]]
      index += 8
    }
    while (index < end) count += this.has(index++) ? 1 : 0
    return count
  }

  /** A copy without the numbers of `other`. */
  without(other: Bitmap): Bitmap {
    const bytes = Uint8Array.from(this.bytes)
    for (let i = 0; i < bytes.length && i < other.bytes.length; i++) bytes[i] &= ~other.bytes[i]
    return new Bitmap(bytes)
  }
}

const BITS_IN_BYTE: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => {
  let count = 0
  for (let rest = byte; rest; rest >>= 1) count += rest & 1
  return count
})

function countBits(bytes: Uint8Array): number {
  let count = 0
  for (const byte of bytes) count += BITS_IN_BYTE[byte]
  return count
}
