/** Of a table that was just made, at most this share of the slots is used. More makes look-ups longer. */
const LOAD_FACTOR = 0.75
const SLOTS_MIN = 4_096
const HASHES = 2 ** 32
const NUMBER_BITS_MAX = 32
const FREE = 0

/**
 * An open-addressing table (linear probing) of objects' numbers by the hashes of their ids, with 4 bytes for each slot:
 * the number, and in the bits above it the lowest bits of the hash, so that an id is compared only if they match. The
 * highest bits of the hash choose the slot, so a table may have any number of slots.
 */
export class LocationSlots {
  /** The memory of the slots, as it was lent. */
  readonly memory: Uint8Array
  readonly #slots: Uint32Array
  readonly #slotOfHash: number
  readonly #numberBits: number
  readonly #numberMask: number
  /** Written only, so that no compiler leaves out the loads of `touch`. */
  readonly #touched = new Uint32Array(1)

  /** For so many objects, whose numbers are below `numbers`. `memory` has `memoryBytes(objects)`, of any content. */
  constructor(
    objects: number,
    numbers: number,
    memory: Uint8Array = new Uint8Array(LocationSlots.memoryBytes(objects)),
  ) {
    this.memory = memory
    this.#slots = new Uint32Array(memory.buffer, memory.byteOffset, LocationSlots.#slotsFor(objects)).fill(FREE)
    this.#slotOfHash = this.#slots.length / HASHES
    this.#numberBits = NUMBER_BITS_MAX - Math.clz32(numbers)
    this.#numberMask = this.#numberBits === NUMBER_BITS_MAX ? ~0 : (1 << this.#numberBits) - 1
  }

  static memoryBytes(objects: number): number {
    return LocationSlots.#slotsFor(objects) * Uint32Array.BYTES_PER_ELEMENT
  }

  static #slotsFor(objects: number): number {
    return Math.max(SLOTS_MIN, Math.ceil(objects / LOAD_FACTOR))
  }

  get memoryBytes(): number {
    return this.#slots.byteLength
  }

  /** The objects for which it has room. */
  get objectsMax(): number {
    return Math.floor(this.#slots.length * LOAD_FACTOR)
  }

  /** Numbers must be below this. */
  get numbersMax(): number {
    return 2 ** this.#numberBits - 1
  }

  put(hash: number, number: number): void {
    const slots = this.#slots
    let at = this.#startOf(hash)
    while (slots[at] !== FREE) at = this.#after(at)
    slots[at] = this.#tagOf(hash) | (number + 1)
  }

  /** The first slot whose number the hash may have; -1 if there is none. */
  first(hash: number): number {
    return this.#match(hash, this.#startOf(hash))
  }

  /** The next such slot after this one. */
  next(hash: number, slot: number): number {
    return this.#match(hash, this.#after(slot))
  }

  numberIn(slot: number): number {
    return ((this.#slots[slot] & this.#numberMask) >>> 0) - 1
  }

  /**
   * Loads what `first` reads for the ids with these hashes: each lies elsewhere in memory, and a processor waits for
   * several places at once only as long as none decides what it does next.
   */
  touch(hashes: Uint32Array, first: number, end: number): void {
    let touched = 0
    for (let i = first; i < end; i++) touched |= this.#slots[this.#startOf(hashes[i])]
    this.#touched[0] = touched
  }

  #match(hash: number, start: number): number {
    const slots = this.#slots
    const tag = this.#tagOf(hash)
    for (let at = start; slots[at] !== FREE; at = this.#after(at))
      if (((slots[at] ^ tag) & ~this.#numberMask) === 0) return at
    return -1
  }

  #after(slot: number): number {
    return slot + 1 === this.#slots.length ? 0 : slot + 1
  }

  #startOf(hash: number): number {
    return Math.floor(hash * this.#slotOfHash)
  }

  #tagOf(hash: number): number {
    return this.#numberBits === NUMBER_BITS_MAX ? 0 : hash << this.#numberBits
  }
}
