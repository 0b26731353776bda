import type { HashKey } from '../../environment.ts'
import { hashBytes, type IdSet } from '../../object/id-set.ts'
import type { Yielder } from '../../async/yielder.ts'

const LOAD_FACTOR = 0.6
const FREE = 0
/** Ids that are looked at between two looks at the clock. */
const STRETCH_IDS = 4_096

/**
 * Which of a million ids are known to be absent, in 4 to 14 bytes each: a table of fingerprints of 32 bits, in which an id has its place by another 32
 * bits of its hash. It never denies an id that is in it, and takes one of two billion others for one.
 */
export class AbsentIds {
  readonly #slots: Uint32Array
  readonly #key: HashKey

  private constructor(count: number, key: HashKey) {
    this.#key = key
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(16, count / LOAD_FACTOR))))
  }

  static async of(sets: readonly IdSet[], yielder: Yielder, key: HashKey): Promise<AbsentIds> {
    const absent = new AbsentIds(
      sets.reduce((sum, { size }) => sum + size, 0),
      key,
    )
    for (const ids of sets) {
      for (let index = 0; index < ids.size; index++) {
        const id = ids.bytesAt(index)
        absent.#slots[absent.#slotOf(id, 0, id.length)] = absent.#fingerprintOf(id, 0, id.length)
        if (index % STRETCH_IDS === 0) await yielder.due()
      }
    }
    return absent
  }

  get memoryBytes(): number {
    return this.#slots.byteLength
  }

  has(source: Uint8Array, start: number, end: number): boolean {
    return this.#slots[this.#slotOf(source, start, end)] !== FREE
  }

  /** The slot of the id, or the free one where it would be. */
  #slotOf(source: Uint8Array, start: number, end: number): number {
    const mask = this.#slots.length - 1
    const fingerprint = this.#fingerprintOf(source, start, end)
    let slot = hashBytes(source, start, end, this.#key) & mask
    while (this.#slots[slot] !== FREE && this.#slots[slot] !== fingerprint) slot = (slot + 1) & mask
    return slot
  }

  #fingerprintOf(source: Uint8Array, start: number, end: number): number {
    return hashBytes(source, start, end, this.#key, true) || 1
  }
}
