import type { HashKey } from '../../environment.ts'
import { hashBytes } from '../../object/id-set.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import type { ByteTable } from '../pack/pack-format.ts'
import { PackedIds } from './packed-ids.ts'

const LOAD_FACTOR = 0.6
/** Beyond this no more packs are added: their objects are found through the records instead, one by one. */
const MEMORY_BYTES_MAX = 64 * 1_048_576
const FREE = 0

/**
 * Where the objects of many packs lie, by id, in an open-addressing table of numbers: objects are numbered through all packs in the order in which
 * the packs came.
 */
export class LocationIndex {
  readonly #key: HashKey
  readonly #packs: PackedIds[] = []
  /** The number of each pack's first object. */
  readonly #firstNumbers: number[] = []
  #hashes = new Uint32Array(4_096)
  /** One more than the object's number. */
  #numbers = new Uint32Array(4_096)
  #objects = 0
  #idsBytes = 0
  #used = 0

  constructor(key: HashKey) {
    this.#key = key
  }

  /** Adds the ids of the next pack, as far as the pack owns them; `false` if there is no room for it. The same pack must not be added twice. */
  add(ids: ByteTable, owned: Bitmap): boolean {
    if (this.#idsBytes + this.#hashes.byteLength * 2 > MEMORY_BYTES_MAX) return false
    while (this.#used + ids.ends.length > this.#hashes.length * LOAD_FACTOR) this.#grow()
    let start = 0
    for (let ordinal = 0; ordinal < ids.ends.length; ordinal++) {
      const end = ids.ends[ordinal]
      if (owned.has(ordinal)) this.#put(hashBytes(ids.bytes, start, end, this.#key), this.#objects + ordinal)
      start = end
    }
    const packed = new PackedIds(ids)
    this.#packs.push(packed)
    this.#firstNumbers.push(this.#objects)
    this.#objects += packed.count
    this.#idsBytes += packed.memoryBytes
    return true
  }

  /** Calls `found` with the place of the id, if it is here: which pack, in the order in which they were added, and the ordinal in it. */
  find(id: Uint8Array, found: (pack: number, ordinal: number) => void): boolean {
    const mask = this.#hashes.length - 1
    const hash = hashBytes(id, 0, id.length, this.#key)
    for (let slot = hash & mask; this.#numbers[slot] !== FREE; slot = (slot + 1) & mask) {
      if (this.#hashes[slot] !== hash) continue
      const number = this.#numbers[slot] - 1
      const pack = this.#packOf(number)
      const ordinal = number - this.#firstNumbers[pack]
      if (!this.#packs[pack].equals(ordinal, id)) continue
      found(pack, ordinal)
      return true
    }
    return false
  }

  /** The pack that holds an object, by binary search. */
  #packOf(number: number): number {
    let low = 0
    let high = this.#firstNumbers.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#firstNumbers[middle] <= number) low = middle
      else high = middle - 1
    }
    return low
  }

  #put(hash: number, number: number): void {
    const mask = this.#hashes.length - 1
    let slot = hash & mask
    while (this.#numbers[slot] !== FREE) slot = (slot + 1) & mask
    this.#hashes[slot] = hash
    this.#numbers[slot] = number + 1
    this.#used++
  }

  #grow(): void {
    const hashes = this.#hashes
    const numbers = this.#numbers
    this.#hashes = new Uint32Array(hashes.length * 2)
    this.#numbers = new Uint32Array(hashes.length * 2)
    this.#used = 0
    for (let slot = 0; slot < hashes.length; slot++)
      if (numbers[slot] !== FREE) this.#put(hashes[slot], numbers[slot] - 1)
  }
}
