import type { RecordStore } from '../../storage/backend.ts'
import { objectKeyMaker } from './keys.ts'
import { decodeObjectRecord, type ObjectPlace, type ObjectRecord, placeAt } from './object-record.ts'
import type { ProjectView } from './project-view.ts'

/** Keys in one call: large enough to be cheap, small enough that neither the engine nor the main thread is held. */
export const LOOKUP_KEYS = 1_000

/** The place of an object for the readers of one layout, and enough facts of its text to compare it with another. */
export interface ObjectLocation extends ObjectPlace, Pick<ObjectRecord, 'state' | 'textBytes' | 'textCrc32'> {}

/**
 * The records of objects, in the order of `ids`; `undefined` for objects that are not held. At most `LOOKUP_KEYS` ids.
 */
export async function readObjects(
  records: RecordStore,
  { projectId, generation }: Pick<ProjectView, 'projectId' | 'generation'>,
  ids: readonly Uint8Array[],
  signal?: AbortSignal,
): Promise<(ObjectRecord | undefined)[]> {
  const keys = ids.map(objectKeyMaker(projectId, generation))
  const values = await records.getMany(keys, { signal })
  return values.map((value, i) => (value === undefined ? undefined : decodeObjectRecord(keys[i], value)))
}

/**
 * The places of objects in the layout of the view, condemned ones too, in the order of `ids`; `undefined` for objects
 * that are not held. At most `LOOKUP_KEYS` ids.
 */
export async function locate(
  records: RecordStore,
  project: ProjectView,
  ids: readonly Uint8Array[],
  signal?: AbortSignal,
): Promise<(ObjectLocation | undefined)[]> {
  const found = await readObjects(records, project, ids, signal)
  return found.map((record) => {
    if (record === undefined) return undefined
    const { state, textBytes, textCrc32 } = record
    const { sequence, ordinal } = placeAt(record, project.layout)
    return { sequence, ordinal, state, textBytes, textCrc32 }
  })
}
