import type { Yielder } from '../../async/yielder.ts'
import type { IdSet } from '../../object/id-set.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { type PackTables, textBytesOf } from '../pack/pack-format.ts'
import { type Segment, segmentsOf } from '../pack/segment.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import type { PlacedObjects } from './placed-objects.ts'

/** One wanted object in so many: then few blocks of the pack are not needed. */
const DENSE_SHARE = 16
/** Ids that are compared between two looks at the clock. */
const SCANNED_AT_ONCE = 512
/** In an array of small integers. */
const NUMBER_BYTES = 8
/** The objects of V8 for each pack. */
const PACK_BYTES = 256

/** The objects of a list that lie in one pack: by the places in their records, or by a scan of the pack's tables. */
export class ListedPack {
  readonly #placed: PlacedObjects
  /** Of its objects there. */
  readonly #numbers: number[] = []
  #scanned: Bitmap | undefined

  /** `placed` is that of the whole list. */
  constructor(placed: PlacedObjects) {
    this.#placed = placed
  }

  get count(): number {
    return this.#scanned?.count ?? this.#numbers.length
  }

  /** Beside the places. */
  get memoryBytes(): number {
    return PACK_BYTES + NUMBER_BYTES * this.#numbers.length + (this.#scanned?.bytes.length ?? 0)
  }

  /** Whether the object is new here. */
  add(id: Uint8Array, record: ObjectRecord): boolean {
    if (this.#scanned !== undefined) return this.#scanned.add(record.ordinal)
    this.#numbers.push(this.#placed.add(id, record))
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
    const scanned = this.#ordinals(tables.objects)
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
  segments(catalog: PackCatalog, pack: Pack): Iterable<Segment> | Promise<Iterable<Segment>> {
    const { objects } = pack.record
    if (this.#scanned === undefined && this.count * DENSE_SHARE < objects)
      return this.#placed.segments(pack.source, this.#numbers)
    const wanted = this.#scanned ?? this.#ordinals(objects)
    return catalog.tables(pack).then((tables) => segmentsOf(tables, wanted, pack.source))
  }

  #ordinals(size: number): Bitmap {
    const bitmap = Bitmap.empty(size)
    for (const number of this.#numbers) bitmap.add(this.#placed.ordinal(number))
    return bitmap
  }
}
