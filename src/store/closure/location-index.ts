import type { Yielder } from '../../async/yielder.ts'
import type { HashKey } from '../../environment.ts'
import { hashBytes } from '../../object/id-set.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import type { ByteTable } from '../pack/pack-format.ts'
import { PackedIds } from './packed-ids.ts'

const LOAD_FACTOR = 0.6
const SLOTS_AT_FIRST = 4_096
/** A slot has a hash and a number. */
const SLOT_BYTES = 8
/** Slots or ids that are looked at between two looks at the clock. */
const STRETCH = 512
const FREE = 0

/** The source of an index's memory: without it packs are left out. */
export interface IndexMemory {
  /** Whether the index may hold so many bytes more. */
  tryHold(bytes: number): boolean
  free(bytes: number): void
}

/**
 * The places of the objects of many packs, by id, in an open-addressing table of numbers. Objects are numbered through
 * all packs in the order in which the packs were added. A pack without memory is left out, and may be found by other
 * means.
 */
export class LocationIndex<P> {
  readonly #key: HashKey
  readonly #memory: IndexMemory
  readonly #packs: { readonly pack: P; readonly firstNumber: number; readonly ids: PackedIds }[] = []
  #hashes = new Uint32Array(SLOTS_AT_FIRST)
  /** One more than the object's number. */
  #numbers = new Uint32Array(SLOTS_AT_FIRST)
  #objects = 0
  #used = 0
  #isDropped = false
  /** Packs are added one after the other. */
  #adding: Promise<unknown> = Promise.resolve()

  constructor(key: HashKey, memory: IndexMemory) {
    this.#key = key
    this.#memory = memory
  }

  /** Packs that are in it. */
  get packs(): number {
    return this.#packs.length
  }

  /**
   * Adds the ids of a pack that the pack owns; `false` if there is no room for it. The same pack must not be added
   * twice.
   */
  add(pack: P, ids: ByteTable, owned: Bitmap, yielder: Yielder): Promise<boolean> {
    const adding = this.#adding.then(() => this.#add(pack, ids, owned, yielder))
    this.#adding = adding.catch(() => undefined)
    return adding
  }

  /** Lets everything go: nothing is found any more. */
  drop(): void {
    this.#isDropped = true
    this.#packs.length = 0
    this.#hashes = new Uint32Array(1)
    this.#numbers = new Uint32Array(1)
  }

  /** Calls `found` with the place of the id, if it is here: which pack, and the ordinal in it. */
  find(source: Uint8Array, start: number, end: number, found: (pack: P, ordinal: number) => void): boolean {
    const mask = this.#hashes.length - 1
    const hash = hashBytes(source, start, end, this.#key)
    for (let slot = hash & mask; this.#numbers[slot] !== FREE; slot = (slot + 1) & mask) {
      if (this.#hashes[slot] !== hash) continue
      const number = this.#numbers[slot] - 1
      const { pack, firstNumber, ids } = this.#packs[this.#placeOf(number)]
      if (!ids.equals(number - firstNumber, source, start, end)) continue
      found(pack, number - firstNumber)
      return true
    }
    return false
  }

  async #add(pack: P, ids: ByteTable, owned: Bitmap, yielder: Yielder): Promise<boolean> {
    const idsBytesMax = PackedIds.memoryBytesMax(ids)
    const slots = this.#slotsFor(this.#used + ids.ends.length)
    const grownBytes = slots > this.#hashes.length ? slots * SLOT_BYTES : 0
    if (this.#isDropped || !this.#memory.tryHold(grownBytes + idsBytesMax)) return false
    const packed = await PackedIds.of(ids, yielder)
    this.#memory.free(idsBytesMax - packed.memoryBytes)
    if (grownBytes > 0) await this.#grow(slots, yielder)
    if (this.#isDropped) return false
    const firstNumber = this.#objects
    this.#packs.push({ pack, firstNumber, ids: packed })
    this.#objects += packed.count
    for (let ordinal = 0, start = 0; ordinal < ids.ends.length && !this.#isDropped; start = ids.ends[ordinal++]) {
      if (owned.has(ordinal)) {
        put(
          this.#hashes,
          this.#numbers,
          hashBytes(ids.bytes, start, ids.ends[ordinal], this.#key),
          firstNumber + ordinal,
        )
        this.#used++
      }
      if (ordinal % STRETCH === 0) await yielder.due()
    }
    return !this.#isDropped
  }

  #slotsFor(objects: number): number {
    let slots = this.#hashes.length
    while (objects > slots * LOAD_FACTOR) slots *= 2
    return slots
  }

  async #grow(slots: number, yielder: Yielder): Promise<void> {
    const before = this.#hashes
    const hashes = new Uint32Array(slots)
    const numbers = new Uint32Array(slots)
    for (let slot = 0; slot < before.length && !this.#isDropped; slot++) {
      if (this.#numbers[slot] !== FREE) put(hashes, numbers, before[slot], this.#numbers[slot] - 1)
      if (slot % STRETCH === 0) await yielder.due()
    }
    if (this.#isDropped) return
    this.#hashes = hashes
    this.#numbers = numbers
    // The first table is too small to be counted.
    if (before.length > SLOTS_AT_FIRST) this.#memory.free(before.length * SLOT_BYTES)
  }

  /** The pack that holds an object, by binary search. */
  #placeOf(number: number): number {
    let low = 0
    let high = this.#packs.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#packs[middle].firstNumber <= number) low = middle
      else high = middle - 1
    }
    return low
  }
}

function put(hashes: Uint32Array, numbers: Uint32Array, hash: number, number: number): void {
  const mask = hashes.length - 1
  let slot = hash & mask
  while (numbers[slot] !== FREE) slot = (slot + 1) & mask
  hashes[slot] = hash
  numbers[slot] = number + 1
}
