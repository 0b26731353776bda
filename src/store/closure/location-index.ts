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
/** Ids that are looked for, or added, together. */
export const SOUGHT_AT_ONCE = 512
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
  /** For each slot a hash and one more than the object's number, side by side: a processor loads both at once. */
  #slots = new Uint32Array(2 * SLOTS_AT_FIRST)
  #objects = 0
  #used = 0
  #isDropped = false
  /** Written only, so that no compiler leaves out the loads of `touch`. */
  readonly #touched = new Uint32Array(1)
  /** Hashes of the ids that are added next. */
  readonly #added = new Uint32Array(SOUGHT_AT_ONCE)
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
    this.#slots = new Uint32Array(2)
  }

  /**
   * Loads what `find` reads first for the ids with these hashes, `SOUGHT_AT_ONCE` of them at most: each lies elsewhere in
   * memory, and a processor waits for several places at once only as long as none decides what it does next.
   */
  touch(hashes: Uint32Array, first: number, end: number = hashes.length): void {
    const slots = this.#slots
    const mask = slots.length - 2
    let touched = 0
    for (let i = first; i < Math.min(end, first + SOUGHT_AT_ONCE); i++) touched |= slots[(hashes[i] << 1) & mask]
    this.#touched[0] = touched
  }

  /**
   * Calls `found` with the place of the id, if it is here: which pack, and the ordinal in it. `hash` is that of the id
   * under the key of the index.
   */
  find(
    hash: number,
    source: Uint8Array,
    start: number,
    end: number,
    found: (pack: P, ordinal: number) => void,
  ): boolean {
    const slots = this.#slots
    const mask = slots.length - 2
    for (let at = (hash << 1) & mask; slots[at + 1] !== FREE; at = (at + 2) & mask) {
      if (slots[at] !== hash) continue
      const number = slots[at + 1] - 1
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
    const grownBytes = 2 * slots > this.#slots.length ? slots * SLOT_BYTES : 0
    if (this.#isDropped || !this.#memory.tryHold(grownBytes + idsBytesMax)) return false
    const packed = await PackedIds.of(ids, yielder)
    this.#memory.free(idsBytesMax - packed.memoryBytes)
    if (grownBytes > 0) await this.#grow(slots, yielder)
    if (this.#isDropped) return false
    const firstNumber = this.#objects
    this.#packs.push({ pack, firstNumber, ids: packed })
    this.#objects += packed.count
    const { ends } = ids
    for (let ordinal = 0, start = 0; ordinal < ends.length && !this.#isDropped;) {
      const end = Math.min(ends.length, ordinal + SOUGHT_AT_ONCE)
      for (let i = ordinal; i < end; start = ends[i++])
        this.#added[i - ordinal] = hashBytes(ids.bytes, start, ends[i], this.#key)
      this.touch(this.#added, 0, end - ordinal)
      for (let i = 0; ordinal < end; i++, ordinal++) {
        if (!owned.has(ordinal)) continue
        put(this.#slots, this.#added[i], firstNumber + ordinal + 1)
        this.#used++
      }
      await yielder.due()
    }
    return !this.#isDropped
  }

  #slotsFor(objects: number): number {
    let slots = this.#slots.length / 2
    while (objects > slots * LOAD_FACTOR) slots *= 2
    return slots
  }

  async #grow(slots: number, yielder: Yielder): Promise<void> {
    const before = this.#slots
    const larger = new Uint32Array(2 * slots)
    for (let first = 0; first < before.length && !this.#isDropped; first += 2 * SOUGHT_AT_ONCE) {
      const end = Math.min(before.length, first + 2 * SOUGHT_AT_ONCE)
      for (let at = first; at < end; at += 2) if (before[at + 1] !== FREE) put(larger, before[at], before[at + 1])
      await yielder.due()
    }
    if (this.#isDropped) return
    this.#slots = larger
    // The first table is too small to be counted.
    if (before.length > 2 * SLOTS_AT_FIRST) this.#memory.free((before.length / 2) * SLOT_BYTES)
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

function put(slots: Uint32Array, hash: number, entry: number): void {
  const mask = slots.length - 2
  let at = (hash << 1) & mask
  while (slots[at + 1] !== FREE) at = (at + 2) & mask
  slots[at] = hash
  slots[at + 1] = entry
}
