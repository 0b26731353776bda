import { hashBytes } from '../object/id-set.ts'
import type { ByteTable } from './pack-format.ts'

const LOAD_FACTOR = 0.6

/**
 * Where each object of the loaded packs lies, by id: (slot of the pack, ordinal) in an open-addressing table of numbers. Ids themselves stay in the
 * tables of the packs; `idsOf` gives them back, or nothing when they are not in memory any more, and then the object simply is not found here.
 */
export class LocationIndex {
  readonly #idsOf: (packSlot: number) => ByteTable | undefined
  #hashes = new Uint32Array(4_096)
  #packs = new Uint32Array(4_096)
  #ordinals = new Uint32Array(4_096)
  #size = 0

  constructor(idsOf: (packSlot: number) => ByteTable | undefined) {
    this.#idsOf = idsOf
  }

  get memoryBytes(): number {
    return this.#hashes.byteLength * 3
  }

  /** Adds the ids of a pack; the same pack must not be added twice. */
  add(packSlot: number, ids: ByteTable, isOwned: (ordinal: number) => boolean): void {
    while ((this.#size + ids.ends.length) > this.#hashes.length * LOAD_FACTOR) this.#grow()
    let start = 0
    for (let ordinal = 0; ordinal < ids.ends.length; ordinal++) {
      const end = ids.ends[ordinal]
      if (isOwned(ordinal)) this.#put(hashBytes(ids.bytes, start, end), packSlot, ordinal)
      start = end
    }
  }

  /** Calls `found` with the place of the id, if it is here. */
  find(source: Uint8Array, start: number, end: number, found: (packSlot: number, ordinal: number) => void): boolean {
    const mask = this.#hashes.length - 1
    const hash = hashBytes(source, start, end)
    for (let slot = hash & mask; this.#packs[slot] !== 0; slot = (slot + 1) & mask) {
      if (this.#hashes[slot] !== hash) continue
      const packSlot = this.#packs[slot] - 1
      const ids = this.#idsOf(packSlot)
      if (ids === undefined || !equals(ids, this.#ordinals[slot], source, start, end)) continue
      found(packSlot, this.#ordinals[slot])
      return true
    }
    return false
  }

  #put(hash: number, packSlot: number, ordinal: number): void {
    const mask = this.#hashes.length - 1
    let slot = hash & mask
    while (this.#packs[slot] !== 0) slot = (slot + 1) & mask
    this.#hashes[slot] = hash
    this.#packs[slot] = packSlot + 1
    this.#ordinals[slot] = ordinal
    this.#size++
  }

  #grow(): void {
    const [hashes, packs, ordinals] = [this.#hashes, this.#packs, this.#ordinals]
    this.#hashes = new Uint32Array(hashes.length * 2)
    this.#packs = new Uint32Array(hashes.length * 2)
    this.#ordinals = new Uint32Array(hashes.length * 2)
    this.#size = 0
    for (let slot = 0; slot < hashes.length; slot++) if (packs[slot] !== 0) this.#put(hashes[slot], packs[slot] - 1, ordinals[slot])
  }
}

function equals(ids: ByteTable, ordinal: number, source: Uint8Array, start: number, end: number): boolean {
  const from = ordinal === 0 ? 0 : ids.ends[ordinal - 1]
  if (ids.ends[ordinal] - from !== end - start) return false
  for (let i = from, j = start; j < end; i++, j++) if (ids.bytes[i] !== source[j]) return false
  return true
}
