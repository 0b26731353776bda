import { readFileSync } from 'node:fs'

const PREFIX_BITS_DIGITS = 13

/** The ids of a file, one a line. */
export function readIds(file: string): readonly string[] {
  return readFileSync(file, 'latin1').trimEnd().split('\n')
}

/**
 * Ids that are hashes, known by their first 52 bits: 16 bytes for each. Among two million ids, two meet with a
 * probability of 1 in 2,000.
 */
export class IdPrefixSet {
  readonly #slots: Float64Array
  readonly #mask: number

  constructor(idsMax: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(16, idsMax * 2)))
    this.#slots = new Float64Array(size)
    this.#mask = size - 1
  }

  add(id: string): void {
    this.#slots[this.#slotOf(id)] = prefixOf(id)
  }

  has(id: string): boolean {
    return this.#slots[this.#slotOf(id)] !== 0
  }

  /** The slot of the id, or the free one where it belongs. */
  #slotOf(id: string): number {
    const prefix = prefixOf(id)
    let slot = prefix % this.#slots.length
    while (this.#slots[slot] !== 0 && this.#slots[slot] !== prefix) slot = (slot + 1) & this.#mask
    return slot
  }
}

/** Never 0, which marks a free slot. */
function prefixOf(id: string): number {
  return Number.parseInt(id.slice(0, PREFIX_BITS_DIGITS), 16) + 1
}
