import { Yielder } from '../../async/yielder.ts'
import { isObjectId, OBJECT_ID_BYTES_MAX } from '../../object/id.ts'
import { IdSet } from '../../object/id-set.ts'
import { MISSING_IDS_TOLD_MAX } from '../../object/selection.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { LOOKUP_KEYS, readObjects } from '../records/locator.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { isActive } from '../records/pack-record.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { ListedObjects } from './list-selection.ts'
import { ListedPack } from './listed-pack.ts'
import { PlacedObjects } from './placed-objects.ts'
import type { WalkContext } from './with-walk.ts'

/** A list of more ids is sampled first, to find packs that hold much of it. */
const SAMPLED_IDS_MIN: number = 2 * LOOKUP_KEYS
/** Comparing a pack's ids with the list is so many times faster, for each id, than a look-up of a record. */
const SCAN_SHARE = 32

export type FinderParts = Pick<WalkContext, 'records' | 'catalog' | 'environment'>

/**
 * Finds where the objects of one list lie. Each id is looked up in the records, except where neighbours are asked for:
 * a sample of a long list tells the packs that hold much of it, and the tables of those tell the rest.
 */
export class ListFinder {
  readonly #parts: FinderParts
  readonly #project: ProjectView
  readonly #ids: IdSet
  readonly #signal: AbortSignal
  readonly #found: Bitmap
  readonly #packs = new Map<number, ListedPack>()
  readonly #placed: PlacedObjects
  readonly #missing = new IdSet()
  readonly #yielder: Yielder
  #missingCount = 0
  #textBytes = 0

  constructor(parts: FinderParts, project: ProjectView, ids: IdSet, signal: AbortSignal) {
    this.#parts = parts
    this.#project = project
    this.#ids = ids
    this.#signal = signal
    this.#found = Bitmap.empty(ids.size)
    this.#placed = new PlacedObjects(Math.min(ids.size, LOOKUP_KEYS))
    this.#yielder = new Yielder(parts.environment)
  }

  async find(): Promise<ListedObjects> {
    if (this.#ids.size >= SAMPLED_IDS_MIN) await this.#sample()
    for (let next = 0; next < this.#ids.size;) {
      const asked: number[] = []
      for (; next < this.#ids.size && asked.length < LOOKUP_KEYS; next++) if (!this.#found.has(next)) asked.push(next)
      for (const [i, record] of (await this.#read(asked)).entries()) this.#note(asked[i], record)
    }
    const [packs, missing, missingCount] = [this.#packs, this.#missing, this.#missingCount]
    const memoryBytes = this.#placed.memoryBytes + missing.memoryBytes
    return { project: this.#project, packs, memoryBytes, missing, missingCount, textBytes: this.#textBytes }
  }

  /** Looks up some ids, spread over all, and scans the packs that seem to hold much of the list. */
  async #sample(): Promise<void> {
    const stride = Math.ceil(this.#ids.size / LOOKUP_KEYS)
    const asked = Array.from({ length: Math.floor(this.#ids.size / stride) }, (_, i) => i * stride)
    const sampled = await this.#read(asked)
    // Those that are held nowhere wait for their turn: they are told in the order of the list.
    for (const [i, record] of sampled.entries()) if (record !== undefined) this.#note(asked[i], record)
    for (const [sequence, listed] of this.#packs) {
      this.#signal.throwIfAborted()
      const pack = await this.#parts.catalog.packOfAnyLayout(this.#project, sequence)
      const { objects, owned } = pack.record
      const isWorth = listed.count * stride * SCAN_SHARE >= objects
      if (!isWorth || owned === undefined || !isActive(pack.record, this.#project.layout)) continue
      // Tables that cannot be read now are no reason to fail here: whoever reads the objects says why.
      const borrowed = await this.#parts.catalog.sharedTables(pack).catch(() => undefined)
      if (borrowed === undefined) continue
      try {
        const sought = { ids: this.#ids, found: this.#found }
        this.#textBytes += await listed.scan(borrowed.tables, owned, sought, this.#yielder)
      } finally {
        borrowed.giveBack()
      }
    }
  }

  #read(asked: readonly number[]): Promise<readonly (ObjectRecord | undefined)[]> {
    return readListed(this.#parts, this.#project, this.#ids, asked, this.#signal)
  }

  #note(number: number, record: ObjectRecord | undefined): void {
    this.#found.add(number)
    const id = this.#ids.bytesAt(number)
    if (record === undefined) {
      // An id of megabytes is counted, and not repeated.
      if (this.#missingCount++ < MISSING_IDS_TOLD_MAX && id.length <= OBJECT_ID_BYTES_MAX) this.#missing.add(id)
      return
    }
    const listed = this.#packs.get(record.sequence) ?? new ListedPack(this.#placed)
    this.#packs.set(record.sequence, listed)
    if (listed.add(id, record)) this.#textBytes += record.textBytes
  }
}

/**
 * The records of objects of a list, `LOOKUP_KEYS` at most. Lists come from clients: a text that can never be an id is
 * held nowhere, and no store is asked for it.
 */
export async function readListed(
  { records }: Pick<FinderParts, 'records'>,
  project: ProjectView,
  ids: IdSet,
  asked: readonly number[],
  signal: AbortSignal,
): Promise<readonly (ObjectRecord | undefined)[]> {
  const possible: Uint8Array[] = []
  const places: number[] = []
  for (const [i, number] of asked.entries()) {
    const id = ids.bytesAt(number)
    if (isObjectId(id)) places[possible.push(id) - 1] = i
  }
  const found = Array.from<ObjectRecord | undefined>({ length: asked.length })
  const read = possible.length === 0 ? [] : await readObjects(records, project, possible, signal)
  for (const [k, record] of read.entries()) found[places[k]] = record
  return found
}
