import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import { objectKeyMaker } from './keys.ts'
import { LOOKUP_KEYS } from './locator.ts'
import { areAsExpected, type FoundValues, TRIES_AT_ONCE, valuesFound } from './lost-try.ts'
import { decodeObjectRecord, encodeObjectRecord, type ObjectRecord } from './object-record.ts'
import type { StoredProject } from './project-view.ts'

const ATTEMPTS_MAX = 50
/** Larger commits would hold everything else up, whatever the storage takes. */
const COMMIT_ENTRIES_MAX = 1_000
const COMMIT_BYTES_MAX = 524_288
/** The head of the project, the epoch, the record of the collection and the totals. */
const TERMS_ENTRIES_MAX = 4

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
  /** Takes what is expected from these values, or reads it, in the turn. Whether decisions of before hold. */
  renew(found?: FoundValues): Promise<boolean>
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
  parts: ChangeParts,
  { projectId, generation }: StoredProject,
  ids: readonly Uint8Array[],
  decide: (record: ObjectRecord | undefined, at: number) => Decision,
  { signal, terms }: { readonly signal: AbortSignal | undefined; readonly terms: ChangeTerms | undefined },
): Promise<ChangedObjects> {
  const { records, environment } = parts
  const keys = ids.map(objectKeyMaker(projectId, generation))
  let values = [...(await records.getMany(keys, { signal }))]
  const after: (ObjectRecord | undefined)[] = Array.from({ length: ids.length })
  const changed: number[] = []
  let open = keys.map((_, at) => at)
  for (let attempt = 0; open.length > 0; attempt++) {
    if (attempt === ATTEMPTS_MAX) throw tooBusy()
    if (attempt > 0 && attempt % TRIES_AT_ONCE === 0) {
      await pauseBeforeRetry(attempt, environment)
      values = [...(await records.getMany(keys, { signal }))]
    }
    const changes = open.flatMap((at): OpenChange[] => {
      const before = values[at]
      const record = before === undefined ? undefined : decodeObjectRecord(keys[at], before)
      const decision = decide(record, at)
      after[at] = decision === 'keep' ? record : decision
      if (decision === 'keep' || decision === record) return []
      const value = decision && encodeObjectRecord(keys[at], decision)
      return [{ at, key: keys[at], before, after: value, change: { before: record, after: decision } }]
    })
    open = []
    let areDecisionsOld = false
    for (const chunk of inCommits(changes, records, terms)) {
      signal?.throwIfAborted()
      // What was decided on older terms is decided again.
      const lost = areDecisionsOld ? chunk.map(({ before }) => before) : await commitChunk(records, chunk, terms)
      if (lost === 'terms') areDecisionsOld = true
      else if (lost !== undefined) for (const [i, { at }] of chunk.entries()) values[at] = lost[i]
      for (const { at } of chunk) (lost === undefined ? changed : open).push(at)
    }
  }
  return { after, changed: changed.sort((a, b) => a - b) }
}

/** How a commit was lost: what was decided does not hold any more, or the records of its objects are now these. */
type Lost = 'terms' | FoundValues

/** `undefined` if the commit was made. */
async function commitChunk(
  records: RecordStore,
  chunk: readonly OpenChange[],
  terms: ChangeTerms | undefined,
): Promise<Lost | undefined> {
  if (terms === undefined) return (await commitNow(records, chunk))?.objects
  return terms.inTurn(async () => {
    let lost: LostCommit | undefined
    for (let tries = 0; tries < TRIES_AT_ONCE; tries++) {
      if (!(await terms.renew(lost?.terms))) return 'terms'
      lost = await commitNow(records, chunk, terms)
      if (lost === undefined) return undefined
      if (!areAsExpected(lost.objects, expectationsOf(chunk))) break
    }
    return lost?.objects
  })
}

/** The values that a lost commit found. */
interface LostCommit {
  readonly terms: FoundValues
  readonly objects: FoundValues
}

async function commitNow(
  records: RecordStore,
  chunk: readonly OpenChange[],
  terms?: ChangeTerms,
): Promise<LostCommit | undefined> {
  const beside = terms?.put?.(chunk.map(({ change }) => change)) ?? []
  const termsExpected = terms?.expect ?? []
  const expect = [...termsExpected, ...expectationsOf(chunk)]
  const result = await records.commit({
    put: [...beside, ...chunk.flatMap(({ key, after }) => (after === undefined ? [] : [{ key, value: after }]))],
    remove: chunk.filter(({ after }) => after === undefined).map(({ key }) => key),
    expect,
  })
  if (result.ok) return undefined
  const found = valuesFound(expect, result.conflicts)
  return { terms: found.slice(0, termsExpected.length), objects: found.slice(termsExpected.length) }
}

function expectationsOf(chunk: readonly OpenChange[]): Expectation[] {
  return chunk.map(({ key, before }) => ({ key, value: before }))
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
