import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import { objectKeyMaker } from './keys.ts'
import { LOOKUP_KEYS } from './locator.ts'
import { decodeObjectRecord, encodeObjectRecord, type ObjectRecord } from './object-record.ts'
import type { StoredProject } from './project-view.ts'

const ATTEMPTS_MAX = 50
/** Larger commits would hold everything else up, whatever the storage takes. */
const COMMIT_ENTRIES_MAX = 1_000
const COMMIT_BYTES_MAX = 524_288
/** The head of the project, the epoch and the totals. */
const TERMS_ENTRIES_MAX = 3

export interface ChangeParts {
  readonly records: RecordStore
  readonly environment: Environment
}

/** The record that an object shall have: `undefined` to remove it, `keep` to leave it as it is. */
export type Decision = ObjectRecord | undefined | 'keep'

export interface ChangedObjects {
  /** The records afterwards, in the order of the ids. */
  readonly after: readonly (ObjectRecord | undefined)[]
  /** Ordinals in `ids` of the objects that this call changed. */
  readonly changed: readonly number[]
}

/** What each commit expects and puts besides the objects. */
export interface ChangeTerms {
  readonly expect: readonly Expectation[]
  /** Runs a commit, while this process changes nothing else that is expected. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Reads what is expected, in the turn. Whether decisions of before hold. */
  renew(): Promise<boolean>
  /** Entries for these changes; `expect` names their keys. */
  put?(changes: readonly ObjectChange[]): readonly Entry[]
}

export interface ObjectChange {
  readonly before: ObjectRecord | undefined
  readonly after: ObjectRecord | undefined
}

interface OpenChange {
  readonly at: number
  readonly key: Uint8Array
  readonly before: Uint8Array | undefined
  readonly after: Uint8Array | undefined
  readonly change: ObjectChange
}

/**
 * Changes records of objects, each one only as long as it is as it was read; if it changed meanwhile, it is read and
 * decided on again. In commits as large as the record store takes them, within bounds: a crash leaves the first of them made, and the
 * call can be repeated.
 */
export async function changeObjects(
  parts: ChangeParts,
  project: StoredProject,
  ids: readonly Uint8Array[],
  decide: (record: ObjectRecord | undefined, at: number) => Decision,
  signal?: AbortSignal,
  terms?: ChangeTerms,
): Promise<ChangedObjects> {
  const after: (ObjectRecord | undefined)[] = []
  const changed: number[] = []
  for (let first = 0; first < ids.length; first += LOOKUP_KEYS) {
    const some = ids.slice(first, first + LOOKUP_KEYS)
    const part = await changeSome(parts, project, some, (record, at) => decide(record, first + at), { signal, terms })
    for (const record of part.after) after.push(record)
    for (const at of part.changed) changed.push(first + at)
  }
  return { after, changed }
}

async function changeSome(
  { records, environment }: ChangeParts,
  { projectId, generation }: StoredProject,
  ids: readonly Uint8Array[],
  decide: (record: ObjectRecord | undefined, at: number) => Decision,
  { signal, terms }: { readonly signal: AbortSignal | undefined; readonly terms: ChangeTerms | undefined },
): Promise<ChangedObjects> {
  const keys = ids.map(objectKeyMaker(projectId, generation))
  const after: (ObjectRecord | undefined)[] = Array.from({ length: ids.length })
  const changed: number[] = []
  let open = keys.map((_, at) => at)
  for (let attempt = 0; open.length > 0; attempt++) {
    if (attempt === ATTEMPTS_MAX) throw tooBusy()
    if (attempt > 0) await pauseBeforeRetry(attempt, environment)
    const values = await records.getMany(
      open.map((at) => keys[at]),
      { signal },
    )
    const changes = open.flatMap((at, i): OpenChange[] => {
      const before = values[i]
      const record = before === undefined ? undefined : decodeObjectRecord(keys[at], before)
      const decision = decide(record, at)
      after[at] = decision === 'keep' ? record : decision
      if (decision === 'keep' || decision === record) return []
      const value = decision && encodeObjectRecord(keys[at], decision)
      return [{ at, key: keys[at], before, after: value, change: { before: record, after: decision } }]
    })
    open = []
    for (const chunk of inCommits(changes, records, terms)) {
      signal?.throwIfAborted()
      // What was decided on older terms is decided again.
      const isMade = (terms === undefined || open.length === 0) && (await commitChunk(records, chunk, terms))
      for (const { at } of chunk) (isMade ? changed : open).push(at)
    }
  }
  return { after, changed: changed.sort((a, b) => a - b) }
}

function commitChunk(
  records: RecordStore,
  chunk: readonly OpenChange[],
  terms: ChangeTerms | undefined,
): Promise<boolean> {
  if (terms === undefined) return commitNow(records, chunk)
  return terms.inTurn(async () => (await terms.renew()) && commitNow(records, chunk, terms))
}

async function commitNow(records: RecordStore, chunk: readonly OpenChange[], terms?: ChangeTerms): Promise<boolean> {
  const beside = terms?.put?.(chunk.map(({ change }) => change)) ?? []
  const { ok } = await records.commit({
    put: [...beside, ...chunk.flatMap(({ key, after }) => (after === undefined ? [] : [{ key, value: after }]))],
    remove: chunk.filter(({ after }) => after === undefined).map(({ key }) => key),
    expect: [...(terms?.expect ?? []), ...chunk.map(({ key, before }): Expectation => ({ key, value: before }))],
  })
  return ok
}

function* inCommits(
  changes: readonly OpenChange[],
  { limits }: RecordStore,
  terms: ChangeTerms | undefined,
): Generator<readonly OpenChange[]> {
  const entriesMax =
    Math.min(COMMIT_ENTRIES_MAX, limits.commitEntriesMax) - (terms === undefined ? 0 : TERMS_ENTRIES_MAX)
  const bytesMax = Math.min(COMMIT_BYTES_MAX, limits.commitBytesMax)
  let chunk: OpenChange[] = []
  let bytes = 0
  for (const change of changes) {
    const { key, before, after } = change
    const changeBytes = 2 * key.length + (before?.length ?? 0) + (after?.length ?? 0)
    if (chunk.length > 0 && (chunk.length === entriesMax || bytes + changeBytes > bytesMax)) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(change)
    bytes += changeBytes
  }
  if (chunk.length > 0) yield chunk
}

/** Brings condemned objects back to life. */
export function reviveObjects(
  parts: ChangeParts,
  project: StoredProject,
  ids: readonly Uint8Array[],
  epoch: number,
  signal?: AbortSignal,
): Promise<ChangedObjects> {
  const decide = (record: ObjectRecord | undefined): Decision =>
    record?.state === 'condemned' ? { ...record, state: 'live', epoch } : 'keep'
  return changeObjects(parts, project, ids, decide, signal)
}

function tooBusy(): StowageError {
  return new StowageError('overloaded', 'objects of the project are changed by too many at once; try again shortly', {
    headers: { 'Retry-After': '1' },
  })
}
