import type { Yielder } from '../../async/yielder.ts'
import type { HashKey } from '../../environment.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import type { ByteTable } from '../pack/pack-format.ts'
import type { PackRecord } from '../records/pack-record.ts'
import { type IndexMemory, IndexPieces } from './index-pieces.ts'
import { LocationSlots } from './location-slots.ts'
import { PackedIds } from './packed-ids.ts'

/** How much larger the table gets at least, so that few objects more do not make another one. */
const GROWTH_FACTOR_MIN = 1.5
/** And at most, if the packs that are not in it yet may need it: each table is filled anew. */
const GROWTH_FACTOR_MAX = 8
/** Packs that come later may hold a little more. */
const SPARE_FACTOR = 1.05
/** Ids that are looked for, or added, together. */
export const SOUGHT_AT_ONCE = 512

type PackFacts = Pick<PackRecord, 'owned' | 'sources'>

interface IndexedPack<P> {
  readonly pack: P
  readonly firstNumber: number
  readonly ids: PackedIds
  readonly owned: Bitmap
}

/**
 * The places of the objects of many packs, by id. Objects are numbered through all packs in the order in which the packs
 * were added. A pack without memory is left out, and may be found by other means.
 */
export class LocationIndex<P> {
  readonly #key: HashKey
  readonly #memory: IndexMemory
  readonly #pieces: IndexPieces
  readonly #packsMax: number
  readonly #packs: IndexedPack<P>[] = []
  #slots = new LocationSlots(0, 0)
  /** The first table is too small to be counted. */
  #slotsBytes = 0
  #objects = 0
  #used = 0
  /** The packs that are in it, and those that they replaced. */
  #everPacks = 0
  #isDropped = false
  /** Hashes of the ids that are added next. */
  readonly #added = new Uint32Array(SOUGHT_AT_ONCE)
  /** Packs are added one after the other. */
  #adding: Promise<unknown> = Promise.resolve()

  /** `packsMax`: no more packs will be added, counting those that they replaced. */
  constructor(key: HashKey, memory: IndexMemory, packsMax: number) {
    this.#key = key
    this.#memory = memory
    this.#pieces = new IndexPieces(memory)
    this.#packsMax = packsMax
  }

  /** Packs that are in it. */
  get packs(): number {
    return this.#packs.length
  }

  /**
   * Makes room for so many packs more, like those that are in it, if there is memory. To make it for one after the other
   * would take longer. Whether there is room.
   */
  reserve(packs: number, yielder: Yielder): Promise<boolean> {
    return this.#inTurn(() => this.#reserve(this.#objectsOf(packs), yielder))
  }

  /**
   * Adds the ids of a pack that the pack owns; `false` if that is not known, or there is no room for it. The same pack
   * must not be added twice.
   */
  async add(pack: P, ids: ByteTable, { owned, sources }: PackFacts, yielder: Yielder): Promise<boolean> {
    return owned !== undefined && this.#inTurn(() => this.#add(pack, ids, { owned, sources }, yielder))
  }

  /** Lets everything go: nothing is found any more. */
  drop(): void {
    if (this.#isDropped) return
    this.#isDropped = true
    this.#packs.length = 0
    this.#giveBack(this.#slots)
    this.#slots = new LocationSlots(0, 0)
    // A pack that is being added may still be written there.
    void this.#adding.then(() => this.#pieces.giveBack())
  }

  /** Loads what `find` reads first for the ids with these hashes, `SOUGHT_AT_ONCE` of them at most. */
  touch(hashes: Uint32Array, first: number, end: number = hashes.length): void {
    this.#slots.touch(hashes, first, Math.min(end, first + SOUGHT_AT_ONCE))
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
    for (let slot = slots.first(hash); slot !== -1; slot = slots.next(hash, slot)) {
      const number = slots.numberIn(slot)
      const { pack, firstNumber, ids } = this.#packs[this.#placeOf(number)]
      if (!ids.equals(number - firstNumber, source, start, end)) continue
      found(pack, number - firstNumber)
      return true
    }
    return false
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const adding = this.#adding.then(work)
    this.#adding = adding.catch(() => undefined)
    return adding
  }

  async #add(
    pack: P,
    ids: ByteTable,
    { owned, sources }: PackFacts & { owned: Bitmap },
    yielder: Yielder,
  ): Promise<boolean> {
    if (this.#isDropped || !(await this.#reserve(PackedIds.countOf(ids), yielder))) return false
    const packed = await PackedIds.of(ids, this.#pieces, yielder)
    if (packed === undefined || this.#isDropped) return false
    const firstNumber = this.#objects
    this.#packs.push({ pack, firstNumber, ids: packed, owned })
    this.#objects += packed.count
    this.#everPacks += 1 + sources.length
    for (let first = 0; first < packed.count && !this.#isDropped; first += SOUGHT_AT_ONCE) {
      const end = Math.min(packed.count, first + SOUGHT_AT_ONCE)
      this.#hash(packed, first, end)
      this.touch(this.#added, 0, end - first)
      for (let ordinal = first; ordinal < end; ordinal++) {
        if (!owned.has(ordinal)) continue
        this.#slots.put(this.#added[ordinal - first], firstNumber + ordinal)
        this.#used++
      }
      await yielder.due()
    }
    return !this.#isDropped
  }

  #hash(ids: PackedIds, first: number, end: number): void {
    for (let i = first; i < end; i++) this.#added[i - first] = ids.hashAt(i, this.#key)
  }

  /** Whether there is room for so many objects more. */
  async #reserve(objects: number, yielder: Yielder): Promise<boolean> {
    const used = this.#used + objects
    const numbers = this.#objects + objects
    const { objectsMax, numbersMax } = this.#slots
    if (used <= objectsMax && numbers <= numbersMax) return true
    const room = used <= objectsMax ? objectsMax : Math.max(used, Math.floor(GROWTH_FACTOR_MIN * objectsMax))
    const ample = Math.max(room, Math.min(this.#objectsExpected(), GROWTH_FACTOR_MAX * objectsMax))
    return (await this.#grow(ample, numbers, yielder)) || this.#grow(room, numbers, yielder)
  }

  /** The objects of so many packs, if they are like those that are in it. */
  #objectsOf(packs: number): number {
    return this.#packs.length === 0 ? 0 : Math.ceil((packs * this.#used) / this.#packs.length)
  }

  /** How many objects all packs may have together, if others have as many as those that are in it, or were replaced. */
  #objectsExpected(): number {
    return this.#everPacks === 0 ? 0 : Math.ceil((SPARE_FACTOR * this.#packsMax * this.#used) / this.#everPacks)
  }

  async #grow(room: number, numbers: number, yielder: Yielder): Promise<boolean> {
    const bytes = LocationSlots.memoryBytes(room)
    if (this.#isDropped || !this.#memory.tryHold(bytes)) return false
    const larger = new LocationSlots(room, Math.max(room, numbers), this.#memory.bufferPool.takeAny(bytes))
    for (const packed of this.#packs) await this.#copy(packed, larger, yielder)
    if (this.#isDropped) {
      this.#giveBack(larger)
      return false
    }
    this.#giveBack(this.#slots)
    this.#slots = larger
    this.#memory.free(this.#slotsBytes)
    this.#slotsBytes = bytes
    return true
  }

  /** Nobody looks anything up there any more. */
  #giveBack({ memory }: LocationSlots): void {
    this.#memory.bufferPool.giveBack(memory)
  }

  async #copy({ ids, owned, firstNumber }: IndexedPack<P>, to: LocationSlots, yielder: Yielder): Promise<void> {
    const hashes = this.#added
    for (let ordinal = 0; ordinal < ids.count && !this.#isDropped;) {
      const first = ordinal
      const end = Math.min(ids.count, first + SOUGHT_AT_ONCE)
      this.#hash(ids, first, end)
      to.touch(hashes, 0, end - first)
      for (; ordinal < end; ordinal++) if (owned.has(ordinal)) to.put(hashes[ordinal - first], firstNumber + ordinal)
      await yielder.due()
    }
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
