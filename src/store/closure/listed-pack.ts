import type { Yielder } from '../../async/yielder.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import { type PackTables, textBytesOf } from '../pack/pack-format.ts'
import { type Segment, segmentsOf } from '../pack/segment.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import { PlacedObjects } from './placed-objects.ts'

/** One wanted object in so many: then few blocks of the pack are not needed. */
const DENSE_SHARE = 16
/** Ids that are compared between two looks at the clock. */
const SCANNED_AT_ONCE = 512

/** The objects of a list that lie in one pack: by the places in their records, or by a scan of the pack's tables. */
export class ListedPack {
  readonly #placed = new PlacedObjects()
  #scanned: Bitmap | undefined

  get count(): number {
    return this.#scanned?.count ?? this.#placed.count
  }

  get memoryBytes(): number {
    return this.#placed.memoryBytes + (this.#scanned?.bytes.length ?? 0)
  }

  /** Whether the object is new here. */
  add(id: Uint8Array, record: ObjectRecord): boolean {
    if (this.#scanned !== undefined) return this.#scanned.add(record.ordinal)
    this.#placed.add(id, record)
    return true
  }

  /**
   * Finds the ids that the pack certainly owns, and notes their numbers in `found`. Returns the bytes of those texts
   * that were not found before.
   */
  async scan(
    tables: PackTables,
    owned: Bitmap,
    listed: { readonly ids: IdSet; readonly found: Bitmap },
    yielder: Yielder,
  ): Promise<number> {
    const { ids, found } = listed
    const scanned = this.#placed.ordinals(tables.objects)
    const { bytes, ends } = tables.ids
    let textBytes = 0
    for (let ordinal = 0; ordinal < tables.objects; ordinal++) {
      if (ordinal % SCANNED_AT_ONCE === 0) await yielder.due()
      if (!owned.has(ordinal)) continue
      const number = ids.find(bytes, ordinal === 0 ? 0 : ends[ordinal - 1], ends[ordinal])
      if (number === -1) continue
      found.add(number)
      if (scanned.add(ordinal)) textBytes += textBytesOf(tables, ordinal)
    }
    this.#scanned = scanned
    return textBytes
  }

  /** Of a pack of which much is wanted, most blocks pass as they are stored, which takes its tables. */
  async *segments(catalog: PackCatalog, pack: Pack, yielder: Yielder): AsyncGenerator<Segment> {
    const { objects } = pack.record
    if (this.#scanned === undefined && this.count * DENSE_SHARE < objects)
      return yield* this.#placed.segments(pack.source, yielder)
    yield* segmentsOf(await catalog.tables(pack), this.#scanned ?? this.#placed.ordinals(objects), pack.source)
    return undefined
  }
}
