import { mappedUint32s } from '../../memory/mapped-buffer.ts'

/**
 * Unsigned 32-bit numbers in one growing typed array: eight times smaller than an array of JavaScript numbers in the
 * worst case, and one allocation.
 */
export class Uint32List {
  #values: Uint32Array
  #length = 0

  constructor(capacity = 16) {
    this.#values = mappedUint32s(Math.max(1, capacity))
  }

  get length(): number {
    return this.#length
  }

  get memoryBytes(): number {
    return this.#values.byteLength
  }

  /** Makes place for so many values in all, so that pushing them moves nothing. */
  reserve(count: number): void {
    if (count <= this.#values.length) return
    const larger = mappedUint32s(Math.max(count, this.#values.length * 2))
    larger.set(this.view())
    this.#values = larger
  }

  push(value: number): void {
    if (this.#length === this.#values.length) this.reserve(this.#length + 1)
    this.#values[this.#length++] = value
  }

  pop(): number {
    return this.#values[--this.#length]
  }

  at(index: number): number {
    return this.#values[index]
  }

  set(index: number, value: number): void {
    this.#values[index] = value
  }

  /** A view of the current contents, valid until the next `push`. */
  view(): Uint32Array {
    return this.#values.subarray(0, this.#length)
  }
}
