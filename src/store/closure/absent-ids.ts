import type { HashKey } from '../../environment.ts'
import { hashBytes } from '../../object/id-hash.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { Yielder } from '../../async/yielder.ts'

const LOAD_FACTOR = 0.6
const FREE = 0
/** Ids between two checks of the clock. */
const STRETCH_IDS = 512

/**
 * Which of a million ids are known to be absent, in 4 to 14 bytes each: a table of fingerprints of 32 bits, in which an
 * id has its place by another 32 bits of its hash. It never denies an id that is in it, and takes one of two billion
 * others for one.
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
        const [hash, second] = ids.hashesAt(index, key)
        const fingerprint = second || 1
        absent.#slots[absent.#slotOf(hash, fingerprint)] = fingerprint
        if (index % STRETCH_IDS === 0) await yielder.due()
      }
    }
    return absent
  }

  get memoryBytes(): number {
    return this.#slots.byteLength
  }

  has(source: Uint8Array, start: number, end: number): boolean {
    const fingerprint = hashBytes(source, start, end, this.#key, true) || 1
    return this.#slots[this.#slotOf(hashBytes(source, start, end, this.#key), fingerprint)] !== FREE
  }

  /** The slot of the id, or the free slot for it. */
  #slotOf(hash: number, fingerprint: number): number {
    const mask = this.#slots.length - 1
    let slot = hash & mask
    while (this.#slots[slot] !== FREE && this.#slots[slot] !== fingerprint) slot = (slot + 1) & mask
    return slot
  }
}
