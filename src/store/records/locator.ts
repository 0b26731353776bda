import type { RecordStore } from '../../storage/backend.ts'
import { objectKeyMaker } from './keys.ts'
import type { ProjectView } from './pack-catalog.ts'
import { decodeObjectRecord, type ObjectLocation } from './records.ts'

/** Keys in one call: large enough to be cheap, small enough that neither the engine nor the main thread is held. */
export const LOOKUP_KEYS = 1_000

/**
 * The places of objects, in the order of `ids`; `undefined` for objects that are not held. At most `LOOKUP_KEYS` ids.
 */
export async function locate(
  records: RecordStore,
  { projectId, generation }: Pick<ProjectView, 'projectId' | 'generation'>,
  ids: readonly Uint8Array[],
  signal?: AbortSignal,
): Promise<(ObjectLocation | undefined)[]> {
  const keys = ids.map(objectKeyMaker(projectId, generation))
  const values = await records.getMany(keys, { signal })
  return values.map((value, i) => (value === undefined ? undefined : decodeObjectRecord(keys[i], value)))
}
