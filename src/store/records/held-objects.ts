import type { RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { type PackTables, tableEntry } from '../pack/pack-format.ts'
import { locate, LOOKUP_KEYS } from './locator.ts'
import type { ObjectState } from './object-record.ts'
import type { Pack } from './pack-catalog.ts'
import type { ProjectView } from './project-view.ts'

export interface HeldOptions {
  /** Only objects of this state; of both by default. */
  readonly state?: ObjectState
  readonly signal?: AbortSignal
}

/**
 * The objects that an applied pack holds: those that it certainly owns and, of those that are or were condemned, the
 * ones whose records say that they are here. The bitmap belongs to the caller only if the pack has condemned objects.
 */
export async function objectsHeldBy(
  records: RecordStore,
  project: ProjectView,
  { sequence, record: { owned, condemned, objects } }: Pack,
  tables: PackTables,
  { state, signal }: HeldOptions = {},
): Promise<Bitmap> {
  if (owned === undefined) return Bitmap.empty(objects)
  if (condemned === undefined || condemned.count === 0) return owned
  const held = new Bitmap(Uint8Array.from(owned.bytes), owned.count)
  for (const ordinals of inLookups(condemned, objects)) {
    const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
    const locations = await locate(records, project, ids, signal)
    for (const [i, location] of locations.entries()) {
      const isHere = location?.sequence === sequence && location.ordinal === ordinals[i]
      if (isHere && (state === undefined || location.state === state)) held.add(ordinals[i])
    }
  }
  return held
}

function* inLookups(bitmap: Bitmap, size: number): Generator<readonly number[]> {
  let ordinals: number[] = []
  for (let ordinal = 0; ordinal < size; ordinal++) {
    if (!bitmap.has(ordinal) || ordinals.push(ordinal) < LOOKUP_KEYS) continue
    yield ordinals
    ordinals = []
  }
  if (ordinals.length > 0) yield ordinals
}
