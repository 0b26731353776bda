import type { JsonObject } from '../../automation/author/run-data.ts'
import { StowageError } from '../../errors.ts'
import type { Entry } from '../../storage/backend.ts'
import { projectKey } from '../records/keys.ts'
import type { AutomationStore, ProjectScope } from '../records/store.ts'
import type { RunRecord } from './run-record.ts'

/** UTF-16 units of JSON in one record: as JSON once more, they have three bytes each at most. */
const PART_LENGTH = 20_000

/** The result that a function returns at its end, as records of pieces of its JSON. */
export function finalResultEntries(
  store: AutomationStore,
  scope: ProjectScope,
  runId: string,
  result: JsonObject,
): readonly Entry[] {
  const json = JSON.stringify(result)
  const count = Math.ceil(json.length / PART_LENGTH)
  return Array.from({ length: count }, (_, part) =>
    store.entry(partKey(scope, runId, part), { json: json.slice(part * PART_LENGTH, (part + 1) * PART_LENGTH) }),
  )
}

/** `null` if the function returned nothing. */
export async function readFinalResult(
  store: AutomationStore,
  scope: ProjectScope,
  { id, finalParts }: Pick<RunRecord, 'id' | 'finalParts'>,
): Promise<JsonObject | null> {
  if (finalParts === 0) return null
  const keys = Array.from({ length: finalParts }, (_, part) => partKey(scope, id, part))
  const parts = await store.getMany<{ readonly json: string }>(keys)
  if (parts.includes(undefined))
    throw new StowageError('corrupt_data', 'a part of the result of the function is missing')
  return JSON.parse(parts.map((part) => part?.json).join('')) as JsonObject
}

function partKey(scope: ProjectScope, runId: string, part: number): Uint8Array {
  return projectKey(scope, 'final', runId, String(part).padStart(4, '0'))
}
