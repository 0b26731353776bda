import type { RecordStore } from '../../storage/backend.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import { type PackTables, tableEntry } from '../pack/pack-format.ts'
import { keyBounds, keyParts, packKey, parseHex } from '../records/keys.ts'
import { LOOKUP_KEYS, readObjects } from '../records/locator.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePackRecord, isActive, type PackRecord } from '../records/pack-record.ts'

/** A pack, with its record as it was read. */
export interface StoredPack {
  readonly sequence: number
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly record: PackRecord
}

/** The packs that hold objects in this view, and those whose objects are not all written yet. */
export async function* packsOf(
  records: RecordStore,
  { projectId, generation, sequence: end, layout }: ProjectView,
  options: { readonly signal: AbortSignal; readonly from?: number },
): AsyncGenerator<StoredPack> {
  const bounds = {
    gte: packKey(projectId, generation, options.from ?? 0),
    lt: end === 0 ? keyBounds('pack', projectId, generation).gte : packKey(projectId, generation, end),
  }
  for await (const entries of records.range(bounds, { signal: options.signal })) {
    for (const { key, value } of entries) {
      options.signal.throwIfAborted()
      const record = decodePackRecord(key, value)
      if (record.state === 'committed' || isActive(record, layout))
        yield { sequence: parseHex(keyParts(key)[2]), key, value, record }
    }
  }
}

/** The members of a bitmap, in their order. */
export function* membersOf(bitmap: Bitmap | undefined): Generator<number> {
  const { bytes } = bitmap ?? { bytes: [] }
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 0) continue
    for (let bit = 0; bit < 8; bit++) if ((bytes[at] >> bit) & 1) yield at * 8 + bit
  }
}

/** An object of a pack, with its record; without one, it was freed. */
export interface LookedUp {
  readonly ordinal: number
  readonly record: ObjectRecord | undefined
}

/** Asks the records of these objects of a pack, `LOOKUP_KEYS` at a time. */
export async function* lookedUp(
  records: RecordStore,
  project: ProjectView,
  tables: PackTables,
  ordinals: Iterable<number>,
  signal: AbortSignal,
): AsyncGenerator<readonly LookedUp[]> {
  for (const some of inLookups(ordinals)) {
    const ids = some.map((ordinal) => tableEntry(tables.ids, ordinal))
    const found = await readObjects(records, project, ids, signal)
    yield found.map((record, i) => ({ ordinal: some[i], record }))
  }
}

/** The objects in lists that one look-up can take. */
export function* inLookups<T>(objects: Iterable<T>): Generator<readonly T[]> {
  let some: T[] = []
  for (const object of objects) {
    if (some.push(object) < LOOKUP_KEYS) continue
    yield some
    some = []
  }
  if (some.length > 0) yield some
}
