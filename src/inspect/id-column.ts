import type { BufferPool } from '../memory/buffer-pool.ts'
import { ByteList } from '../object/byte-list.ts'

/** Ids as UTF-8, one after the other, with the end of each: the form in which a batch holds them. */
export class IdColumn {
  readonly #bytes: ByteList
  #ends: Uint32Array
  #count = 0

  /** The bytes are in memory of the pool, if there is one. */
  constructor(capacity: number, bufferPool?: BufferPool) {
    this.#bytes = new ByteList(capacity * 32, bufferPool)
    this.#ends = new Uint32Array(Math.max(1, capacity))
  }

  get count(): number {
    return this.#count
  }

  get bytes(): Uint8Array {
    return this.#bytes.view()
  }

  get ends(): Uint32Array {
    return this.#ends.subarray(0, this.#count)
  }

  add(source: Uint8Array, start: number, end: number): void {
    this.#bytes.append(source, start, end)
    this.#growTo(this.#count + 1)
    this.#ends[this.#count++] = this.#bytes.length
  }

  addAll(others: IdColumn): void {
    if (others.count === 0) return
    const shift = this.#bytes.length
    this.#bytes.append(others.bytes)
    this.#growTo(this.#count + others.count)
    if (shift === 0) this.#ends.set(others.ends, this.#count)
    else for (let i = 0; i < others.count; i++) this.#ends[this.#count + i] = shift + others.#ends[i]
    this.#count += others.count
  }

  /** The bytes, which may be given back to the pool. The column is not used after that. */
  detach(): Uint8Array {
    return this.#bytes.detach()
  }

  clear(): void {
    this.#bytes.clear()
    this.#count = 0
  }

  #growTo(count: number): void {
    if (count <= this.#ends.length) return
    const larger = new Uint32Array(Math.max(count, this.#ends.length * 2))
    larger.set(this.ends)
    this.#ends = larger
  }
}
