import { REAL_ENVIRONMENT, type HashKey } from '../environment.ts'
import { mappedBytes, mappedUint32s } from '../memory/mapped-buffer.ts'
import { hashBytes } from './id-hash.ts'

const EMPTY = 0
const LOAD_FACTOR = 0.6
const CAPACITY_MIN = 16

/**
 * A set of ids as UTF-8 bytes, numbered in the order of their arrival: one arena of bytes and one open-addressing table
 * (linear probing), so that a million ids cost no JavaScript object each. `add` and `find` take a place inside any
 * buffer and copy only new ids.
 */
export class IdSet {
  #bytes: Uint8Array
  #ends: Uint32Array
  #hashes: Uint32Array
  #slots: Uint32Array
  #size = 0
  readonly #key: HashKey

  /**
   * With `arena`, the bytes of ids go there. It may be the buffer that they are read from, front to back: an id is
   * copied to its own place or to one before it, so bytes that were not read yet stay unchanged.
   */
  constructor(capacity = 64, arena?: Uint8Array, key: HashKey = REAL_ENVIRONMENT.hashKey) {
    this.#key = key
    this.#slots = mappedUint32s(slotsFor(capacity))
    this.#hashes = mappedUint32s(Math.max(CAPACITY_MIN, capacity))
    this.#ends = mappedUint32s(Math.max(CAPACITY_MIN, capacity))
    this.#bytes = arena ?? mappedBytes(Math.max(CAPACITY_MIN, capacity) * 32)
  }

  /** The bytes that the tables of a set with this capacity take, besides the bytes of the ids. */
  static tablesBytes(capacity: number): number {
    return 4 * (slotsFor(capacity) + 2 * Math.max(CAPACITY_MIN, capacity))
  }

  get size(): number {
    return this.#size
  }

  /** Bytes of memory that the set holds. */
  get memoryBytes(): number {
    return this.#bytes.byteLength + this.#ends.byteLength + this.#hashes.byteLength + this.#slots.byteLength
  }

  /** Bytes of all ids, one after the other. */
  get idBytes(): number {
    return this.#size === 0 ? 0 : this.#ends[this.#size - 1]
  }

  /** Makes place for so many ids, and so many bytes of them, so that adding them moves nothing. */
  reserve(count: number, idBytes = 0): void {
    if (idBytes > this.#bytes.length) this.#bytes = grown(this.#bytes, idBytes, mappedBytes)
    if (count > this.#ends.length) {
      this.#ends = grown(this.#ends, count, mappedUint32s)
      this.#hashes = grown(this.#hashes, count, mappedUint32s)
    }
    const slots = slotsFor(count)
    if (slots > this.#slots.length) this.#rehash(slots)
  }

  /** The memory that `trim` needs beside the set: it copies one array at a time. */
  get trimBytes(): number {
    return Math.max(this.idBytes, Uint32Array.BYTES_PER_ELEMENT * this.#size)
  }

  /** Frees unused capacity, except in the table of slots. Returns this set. */
  trim(): this {
    this.#bytes = trimmed(this.#bytes, this.idBytes)
    this.#ends = trimmed(this.#ends, this.#size)
    this.#hashes = trimmed(this.#hashes, this.#size)
    return this
  }

  /**
   * The number of the id, new or not; it is new exactly when `size` grew. `hash` is that of the id under the key of the
   * set, for callers that have it already.
   */
  add(
    source: Uint8Array,
    start: number = 0,
    end: number = source.length,
    hash: number = hashBytes(source, start, end, this.#key),
  ): number {
    const slot = this.#slotOf(hash, source, start, end)
    const held = this.#slots[slot]
    if (held !== EMPTY) return held - 1
    return this.#append(slot, hash, source, start, end)
  }

  /** As `add`, with id `index` of another set. */
  addFrom(other: IdSet, index: number): number {
    const start = index === 0 ? 0 : other.#ends[index - 1]
    const hash = other.#key === this.#key ? other.#hashes[index] : undefined
    return this.add(other.#bytes, start, other.#ends[index], hash)
  }

  /** The number of the id, or -1. */
  find(source: Uint8Array, start: number = 0, end: number = source.length): number {
    return this.#slots[this.#slotOf(hashBytes(source, start, end, this.#key), source, start, end)] - 1
  }

  /** A view of the id's bytes, valid until the next `add`. */
  bytesAt(index: number): Uint8Array {
    return this.#bytes.subarray(index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
  }

  stringAt(index: number): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength).toString(
      'utf8',
      index === 0 ? 0 : this.#ends[index - 1],
      this.#ends[index],
    )
  }

  lengthAt(index: number): number {
    return this.#ends[index] - (index === 0 ? 0 : this.#ends[index - 1])
  }

  /** Two hashes of the id, of 32 bits each, as `hashBytes` gives them under `key`. */
  hashesAt(index: number, key: HashKey): readonly [first: number, second: number] {
    const start = index === 0 ? 0 : this.#ends[index - 1]
    const end = this.#ends[index]
    const first = key === this.#key ? this.#hashes[index] : hashBytes(this.#bytes, start, end, key)
    return [first, hashBytes(this.#bytes, start, end, key, true)]
  }

  /**
   * The bytes of all ids, where each of them ends, and its hash under the key of the set, as views: for callers that
   * look at very many ids, since a view of each costs more than its bytes.
   */
  table(): { readonly bytes: Uint8Array; readonly ends: Uint32Array; readonly hashes: Uint32Array } {
    const [ends, hashes] = [this.#ends, this.#hashes].map((numbers) => numbers.subarray(0, this.#size))
    return { bytes: this.#bytes.subarray(0, this.idBytes), ends, hashes }
  }

  #slotOf(hash: number, source: Uint8Array, start: number, end: number): number {
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (;;) {
      const held = this.#slots[slot]
      if (held === EMPTY) return slot
      if (this.#hashes[held - 1] === hash && this.#equals(held - 1, source, start, end)) return slot
      slot = (slot + 1) & mask
    }
  }

  #equals(index: number, source: Uint8Array, start: number, end: number): boolean {
    const from = index === 0 ? 0 : this.#ends[index - 1]
    if (this.#ends[index] - from !== end - start) return false
    const bytes = this.#bytes
    for (let i = from, j = start; j < end; i++, j++) if (bytes[i] !== source[j]) return false
    return true
  }

  #append(slot: number, hash: number, source: Uint8Array, start: number, end: number): number {
    const index = this.#size
    const from = index === 0 ? 0 : this.#ends[index - 1]
    const to = from + end - start
    if (to > this.#bytes.length) this.#bytes = grown(this.#bytes, to, mappedBytes)
    if (index === this.#ends.length) {
      this.#ends = grown(this.#ends, index + 1, mappedUint32s)
      this.#hashes = grown(this.#hashes, index + 1, mappedUint32s)
    }
    for (let i = from, j = start; j < end; i++, j++) this.#bytes[i] = source[j]
    this.#ends[index] = to
    this.#hashes[index] = hash
    this.#slots[slot] = index + 1
    this.#size = index + 1
    if (this.#size > this.#slots.length * LOAD_FACTOR) this.#rehash(this.#slots.length * 2)
    return index
  }

  #rehash(slots: number): void {
    this.#slots = mappedUint32s(slots)
    const mask = this.#slots.length - 1
    for (let index = 0; index < this.#size; index++) {
      let slot = this.#hashes[index] & mask
      while (this.#slots[slot] !== EMPTY) slot = (slot + 1) & mask
      this.#slots[slot] = index + 1
    }
  }
}

/** A power of two, with room for so many ids under the load factor. */
function slotsFor(capacity: number): number {
  const slots = Math.ceil(Math.max(CAPACITY_MIN, capacity / LOAD_FACTOR))
  return (1 << (32 - Math.clz32(slots - 1))) >>> 0
}

function trimmed<T extends Uint8Array | Uint32Array>(array: T, length: number): T {
  return array.length === length ? array : (array.slice(0, length) as T)
}

function grown<T extends Uint8Array | Uint32Array>(array: T, atLeast: number, make: (count: number) => T): T {
  const larger = make(Math.max(atLeast, array.length * 2))
  larger.set(array)
  return larger
}
