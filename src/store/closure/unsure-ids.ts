import type { Yielder } from '../../async/yielder.ts'
import type { HashKey } from '../../environment.ts'
import { IdSet } from '../../object/id-set.ts'
import { tableEntry } from '../pack/pack-format.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'

/** Each unsure id may need a look-up, so there must be few of them beside the ids that need none. */
const SHARE_MAX = 0.25
/** Objects that are looked at between two looks at the clock. */
const STRETCH = 512

/** Ids of objects that are or were condemned: their packs are not sure about them, so the records are asked. */
export class UnsureIds {
  readonly #ids: IdSet
  readonly #packs = new Set<number>()

  constructor(key: HashKey) {
    this.#ids = new IdSet(0, undefined, key)
  }

  get memoryBytes(): number {
    return this.#ids.memoryBytes
  }

  has(source: Uint8Array, start: number, end: number): boolean {
    return this.#ids.size > 0 && this.#ids.find(source, start, end) !== -1
  }

  /** Adds those of a pack, once. */
  async addOf(pack: Pack, catalog: PackCatalog, yielder: Yielder): Promise<void> {
    const { condemned } = pack.record
    if (condemned === undefined || condemned.count === 0 || this.#packs.has(pack.sequence)) return
    await catalog.withTables(pack, async ({ ids, objects }) => {
      for (let ordinal = 0; ordinal < objects; ordinal++) {
        if (condemned.has(ordinal)) this.#ids.add(tableEntry(ids, ordinal))
        if (ordinal % STRETCH === 0) await yielder.due()
      }
    })
    this.#packs.add(pack.sequence)
  }
}

/** Whether these packs are unsure about few objects, compared with so many ids. */
export function areMostlySure(packs: readonly Pack[], ids: number): boolean {
  return packs.reduce((sum, { record }) => sum + (record.condemned?.count ?? 0), 0) <= ids * SHARE_MAX
}
