const EMPTY = 0
const LOAD_FACTOR = 0.6

/**
 * A set of ids as UTF-8 bytes, numbered in the order in which they came: one arena of bytes and one open-addressing table (linear probing),
 * so that a million ids cost no JavaScript object each. `add` and `find` take a place inside any buffer and copy only what is new.
 */
export class IdSet {
  #bytes: Uint8Array
  #ends: Uint32Array
  #hashes: Uint32Array
  #slots: Uint32Array
  #size = 0

  constructor(capacity = 64) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(16, capacity / LOAD_FACTOR)))
    this.#slots = new Uint32Array(slots)
    this.#hashes = new Uint32Array(Math.max(16, capacity))
    this.#ends = new Uint32Array(Math.max(16, capacity))
    this.#bytes = new Uint8Array(Math.max(16, capacity) * 32)
  }

  get size(): number {
    return this.#size
  }

  /** Bytes of memory that the set holds. */
  get memoryBytes(): number {
    return this.#bytes.byteLength + this.#ends.byteLength + this.#hashes.byteLength + this.#slots.byteLength
  }

  /** The number of the id, new or not; it is new exactly when `size` grew. */
  add(source: Uint8Array, start: number = 0, end: number = source.length): number {
    const hash = hashBytes(source, start, end)
    const slot = this.#slotOf(hash, source, start, end)
    const held = this.#slots[slot]
    if (held !== EMPTY) return held - 1
    return this.#append(slot, hash, source, start, end)
  }

  /** The number of the id, or -1. */
  find(source: Uint8Array, start: number = 0, end: number = source.length): number {
    return this.#slots[this.#slotOf(hashBytes(source, start, end), source, start, end)] - 1
  }

  /** A view of the id's bytes, valid until the next `add`. */
  bytesAt(index: number): Uint8Array {
    return this.#bytes.subarray(index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
  }

  stringAt(index: number): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength).toString('utf8', index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
  }

  lengthAt(index: number): number {
    return this.#ends[index] - (index === 0 ? 0 : this.#ends[index - 1])
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
    if (to > this.#bytes.length) this.#bytes = grown(this.#bytes, to)
    if (index === this.#ends.length) {
      this.#ends = grown(this.#ends, index + 1)
      this.#hashes = grown(this.#hashes, index + 1)
    }
    for (let i = from, j = start; j < end; i++, j++) this.#bytes[i] = source[j]
    this.#ends[index] = to
    this.#hashes[index] = hash
    this.#slots[slot] = index + 1
    this.#size = index + 1
    if (this.#size > this.#slots.length * LOAD_FACTOR) this.#rehash()
    return index
  }

  #rehash(): void {
    this.#slots = new Uint32Array(this.#slots.length * 2)
    const mask = this.#slots.length - 1
    for (let index = 0; index < this.#size; index++) {
      let slot = this.#hashes[index] & mask
      while (this.#slots[slot] !== EMPTY) slot = (slot + 1) & mask
      this.#slots[slot] = index + 1
    }
  }
}

function grown<T extends Uint8Array | Uint32Array>(array: T, atLeast: number): T {
  const larger = new (array.constructor as new (length: number) => T)(Math.max(atLeast, array.length * 2))
  larger.set(array)
  return larger
}

/** FNV-1a over bytes, finished as MurmurHash3 does (fmix32), so that ids that differ in their last digits only spread over the whole table. */
export function hashBytes(source: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ source[i], 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
