import type { HashKey } from '../../environment.ts'
import { IdSet } from '../../object/id-set.ts'
import { Uint32List } from '../bytes/growable.ts'

const BYTES_PER_PACK = 8

/**
 * Where a walk has found objects that no pack certainly owns. An upload may write a condemned object anew while the walk
 * is on its way: the walk keeps to the place that it found first, so that the object is not reached twice.
 */
export class PlacesInDoubt<P> {
  readonly #ids: IdSet
  readonly #packs: P[] = []
  readonly #ordinals = new Uint32List()

  constructor(key: HashKey) {
    this.#ids = new IdSet(0, undefined, key)
  }

  get size(): number {
    return this.#packs.length
  }

  get memoryBytes(): number {
    return this.#ids.memoryBytes + this.#ordinals.memoryBytes + BYTES_PER_PACK * this.#packs.length
  }

  /** Notes the place of an id, unless one is known. */
  add(id: Uint8Array, pack: P, ordinal: number): void {
    if (this.#ids.add(id) < this.#packs.length) return
    this.#packs.push(pack)
    this.#ordinals.push(ordinal)
  }

  /** Calls `found` with the place of the id, if it is known. */
  find(source: Uint8Array, start: number, end: number, found: (pack: P, ordinal: number) => void): boolean {
    const at = this.size === 0 ? -1 : this.#ids.find(source, start, end)
    if (at === -1) return false
    found(this.#packs[at], this.#ordinals.at(at))
    return true
  }
}
