import type { HashKey } from '../../environment.ts'
import { hashBytes } from '../../object/id-hash.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { ByteTable, PackTables } from '../pack/pack-format.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { IndexMemory } from './index-pieces.ts'
import { LocationIndex, SOUGHT_AT_ONCE } from './location-index.ts'
import { PlacesInDoubt } from './places-in-doubt.ts'
import type { WalkedPack } from './walked-pack.ts'

/** Where the objects of the packs that a walk has loaded lie, by their ids. */
export class FoundPlaces {
  /** Has the objects that these packs certainly own. */
  readonly index: LocationIndex<WalkedPack>
  readonly inDoubt: PlacesInDoubt<WalkedPack>
  /** Targets that are looked for next, numbered as in the tables of their pack. */
  readonly targets: Uint32Array = new Uint32Array(SOUGHT_AT_ONCE)
  /** The hashes of their ids. */
  readonly hashes: Uint32Array = new Uint32Array(SOUGHT_AT_ONCE)
  readonly #key: HashKey
  readonly #found: (walked: WalkedPack, ordinal: number) => void

  /** `found` is called with each place that is looked for and found. */
  constructor(
    key: HashKey,
    memory: IndexMemory,
    { sequence }: Pick<ProjectView, 'sequence'>,
    found: (walked: WalkedPack, ordinal: number) => void,
  ) {
    // The number of the newest pack.
    this.index = new LocationIndex(key, memory, sequence)
    this.inDoubt = new PlacesInDoubt(key)
    this.#key = key
    this.#found = found
  }

  /** Looks for id `index` of a set, whose key is that of the walk. To be called for one id after the other. */
  findNext({ bytes, ends, hashes }: ReturnType<IdSet['table']>, index: number): boolean {
    if (index % SOUGHT_AT_ONCE === 0) this.index.touch(hashes, index)
    return this.#find(hashes[index], bytes, index === 0 ? 0 : ends[index - 1], ends[index])
  }

  /**
   * Looks for the first `count` of `targets`. Returns how many were not found: these are now the first ones, with their
   * hashes.
   */
  seek(tables: PackTables, count: number): number {
    const { targets, hashes } = this
    for (let i = 0; i < count; i++) {
      const { bytes, ends } = tableOf(tables, targets[i])
      const row = rowOf(tables, targets[i])
      hashes[i] = hashBytes(bytes, row === 0 ? 0 : ends[row - 1], ends[row], this.#key)
    }
    this.index.touch(hashes, 0, count)
    let left = 0
    for (let i = 0; i < count; i++) {
      const { bytes, ends } = tableOf(tables, targets[i])
      const row = rowOf(tables, targets[i])
      if (this.#find(hashes[i], bytes, row === 0 ? 0 : ends[row - 1], ends[row])) continue
      targets[left] = targets[i]
      hashes[left++] = hashes[i]
    }
    return left
  }

  #find(hash: number, source: Uint8Array, start: number, end: number): boolean {
    return this.inDoubt.find(source, start, end, this.#found) || this.index.find(hash, source, start, end, this.#found)
  }
}

/** The table that has the id of a target: its own objects come first, then those of other packs. */
export function tableOf({ objects, ids, externals }: PackTables, target: number): ByteTable {
  return target < objects ? ids : externals
}

export function rowOf({ objects }: PackTables, target: number): number {
  return target < objects ? target : target - objects
}
