import type { Environment } from '../../environment.ts'
import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import { StowageError } from '../../errors.ts'
import type { Entry, RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { type LinePlace, linePlaces } from '../pack/line-places.ts'
import { tableEntry, textBytesOf, type PackTables } from '../pack/pack-format.ts'
import { changeObjects, type Decision } from '../records/change-objects.ts'
import {
  condemnedBlobKey,
  headKey,
  mergeKey,
  packBlobName,
  packKey,
  retiredContentKey,
  totalsKey,
} from '../records/keys.ts'
import { LOOKUP_KEYS } from '../records/locator.ts'
import { afterLostTry } from '../records/lost-try.ts'
import type { ObjectRecord } from '../records/object-record.ts'
import { type Pack, packOf, type PackCatalog } from '../records/pack-catalog.ts'
import type { StoredProject } from '../records/project-view.ts'
import { decodePackRecord, encodePackRecord, type PackContent, type PackRecord } from '../records/pack-record.ts'
import { asHead, isRemoved, readHead } from '../records/projects.ts'
import { decodeMerge, encodeCondemnedBlob, encodeHead, type MergeRecord } from '../records/records.ts'
import { encodeRetiredContent } from '../records/retired-content.ts'
import { addTotals, asStoredTotals, changedTotals, NO_TOTALS, subtractTotals } from '../records/totals.ts'
import type { Pace } from './pace.ts'

const ATTEMPTS_MAX = 100
/**
 * Sources that are read at once, and retired in one commit if it takes so many. Their records are held meanwhile: up to
 * 64 KB each, twice.
 */
const SOURCES_AT_ONCE = 32

export interface FinishParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly environment: Environment
  /** Those of the committer. */
  readonly turns: KeyedMutex
  readonly epoch: () => Promise<number>
}

/** What a merge needs of the packs that it replaces: not their contents, which may lie in the record. */
type MergedSource = Pick<PackRecord, 'owned' | 'reached' | 'packBytes'>

/** The merged pack of a merge under way, with the packs that it replaces. */
interface OpenMerge {
  readonly project: StoredProject
  readonly merge: MergeRecord
  readonly pack: Pack
  readonly sources: ReadonlyMap<number, MergedSource>
}

type Ownership = Pick<PackRecord, 'owned' | 'condemned' | 'reached'>

/**
 * Brings the merge that is under way in a project to its end, whoever began it: the objects' records point to the merged
 * pack, its sources are retired, and one commit makes it take effect. Each step can be repeated, also by several servers
 * at the same time; stopped at any moment, the next call continues. Does nothing if no merge is under way.
 */
export async function finishMerge(
  parts: FinishParts,
  project: StoredProject,
  pace: Pace,
  signal: AbortSignal,
): Promise<void> {
  const key = mergeKey(project.projectId, project.generation)
  const [value] = await parts.records.getMany([key], { signal })
  if (value === undefined) return
  const open = await openMerge(parts, project, decodeMerge(key, value), signal)
  if (open === undefined) return
  const ownership = await parts.catalog.withTables(open.pack, (tables) =>
    repoint(parts, open, tables, { pace, signal }),
  )
  await retireAll(parts, open, signal)
  await parts.turns.run(project.projectId, () => takeEffect(parts, open, ownership))
}

/** `undefined` if the project is removed, or the merge took effect meanwhile. */
async function openMerge(
  { records }: FinishParts,
  project: StoredProject,
  merge: MergeRecord,
  signal: AbortSignal,
): Promise<OpenMerge | undefined> {
  const { projectId, generation } = project
  const { head } = await readHead(records, projectId, signal)
  if (isRemoved(head, generation)) return undefined
  const [record] = await readPacks(records, project, [merge.sequence])
  if (record === undefined) throw corrupt(`the record of the merged pack ${merge.sequence} is missing`)
  if (record.state !== 'merging') return undefined
  const pack = await packOf(records, { ...project, sequence: merge.sequence, record })
  const sources = new Map<number, MergedSource>()
  for (let first = 0; first < record.sources.length; first += SOURCES_AT_ONCE) {
    const sequences = record.sources.slice(first, first + SOURCES_AT_ONCE)
    for (const [i, source] of (await readPacks(records, project, sequences)).entries()) {
      if (source === undefined)
        throw corrupt(`the record of pack ${sequences[i]} is missing, though a merge of it is under way`)
      const { owned, reached, packBytes } = source
      sources.set(sequences[i], { owned, reached, packBytes })
    }
  }
  return { project, merge, pack, sources }
}

async function readPacks(
  records: RecordStore,
  { projectId, generation }: StoredProject,
  sequences: readonly number[],
): Promise<(PackRecord | undefined)[]> {
  const keys = sequences.map((sequence) => packKey(projectId, generation, sequence))
  const values = await records.getMany(keys)
  return values.map((value, i) => (value === undefined ? undefined : decodePackRecord(keys[i], value)))
}

/** Moves the objects' records; returns what the merged pack owns then. */
async function repoint(
  parts: FinishParts,
  open: OpenMerge,
  tables: PackTables,
  { pace, signal }: { readonly pace: Pace; readonly signal: AbortSignal },
): Promise<Ownership> {
  const { sources } = open
  const { record } = open.pack
  const owned = Bitmap.empty(record.objects)
  const condemned = Bitmap.empty(record.objects)
  const reached = Bitmap.empty(record.objects)
  for (let first = 0; first < tables.objects; first += LOOKUP_KEYS) {
    const places = [...linePlaces(tables, first, Math.min(tables.objects, first + LOOKUP_KEYS))]
    const ids = places.map((_, at) => tableEntry(tables.ids, first + at))
    const decide = (object: ObjectRecord | undefined, at: number): Decision =>
      moved(open, tables, { object, place: places[at], ordinal: first + at })
    const { after } = await changeObjects(parts, open.project, ids, decide, signal)
    for (const [at, object] of after.entries()) {
      if (object?.sequence !== open.merge.sequence || object.previous === undefined) continue
      const source = sources.get(object.previous.sequence)
      const { ordinal } = object.previous
      const isUnsure = object.state === 'condemned' || source?.owned?.has(ordinal) !== true
      ;(isUnsure ? condemned : owned).add(first + at)
      if (source?.reached?.has(ordinal) === true) reached.add(first + at)
    }
    await pace.rest(signal)
  }
  return { owned, condemned, reached }
}

/** An object that lies in a source moves, whatever its state. One that lies elsewhere is not this merge's. */
function moved(
  { merge, sources }: OpenMerge,
  tables: PackTables,
  found: { readonly object: ObjectRecord | undefined; readonly place: LinePlace; readonly ordinal: number },
): Decision {
  const { object, ordinal } = found
  const { blockStart, blockStoredBytes, blockRawBytes, lineStart } = found.place
  if (object === undefined || !sources.has(object.sequence)) return 'keep'
  const { state, epoch, textBytes, textCrc32 } = object
  if (textBytes !== textBytesOf(tables, ordinal) || textCrc32 !== tables.textCrc32[ordinal])
    throw corrupt(`a merged pack has another text for an object of pack ${object.sequence}`)
  const previous = { fromLayout: merge.layout, sequence: object.sequence, ordinal: object.ordinal }
  return {
    state,
    epoch,
    sequence: merge.sequence,
    ordinal,
    blockStart,
    blockStoredBytes,
    blockRawBytes,
    lineStart,
    textBytes,
    textCrc32,
    previous,
  }
}

/**
 * From the layout of the merge on, the sources hold nothing. Their blobs go when no reader can need them any more. That
 * time begins anew where a merge that was cut off goes on, since readers need the sources until it takes effect.
 */
async function retireAll(parts: FinishParts, open: OpenMerge, signal: AbortSignal): Promise<void> {
  const left = [...open.sources.keys()]
  for (let attempt = 0; left.length > 0;) {
    signal.throwIfAborted()
    if (attempt === ATTEMPTS_MAX) throw tooBusy()
    if (attempt > 0) await pauseBeforeRetry(attempt, parts.environment)
    const done = await retireFirst(parts, open, left.slice(0, SOURCES_AT_ONCE))
    left.splice(0, done)
    attempt = done === 0 ? attempt + 1 : 0
  }
}

/** Retires as many of these as fit into one commit; returns how many of them are retired then, 0 after a conflict. */
async function retireFirst(
  { records, epoch }: FinishParts,
  { project, merge }: OpenMerge,
  sequences: readonly number[],
): Promise<number> {
  const keys = sequences.map((sequence) => packKey(project.projectId, project.generation, sequence))
  const values = await records.getMany(keys)
  const now = await epoch()
  const put: Entry[] = []
  const expect: Entry[] = []
  let [bytes, keysNamed, done] = [0, 0, 0]
  for (; done < keys.length; done++) {
    const [key, value] = [keys[done], values[done]]
    if (value === undefined) continue
    const { mark, changed } = retired({ ...project, sequence: sequences[done] }, { key, value }, merge, now)
    bytes += bytesOf([{ key, value }, mark, ...changed])
    // The record that is expected counts once, whether it is put or not.
    keysNamed += 1 + Math.max(1, changed.length)
    const isTooMuch = keysNamed > records.limits.commitEntriesMax || bytes > records.limits.commitBytesMax
    if (put.length > 0 && isTooMuch) break
    put.push(...changed, mark)
    expect.push({ key, value })
  }
  if (put.length === 0) return done
  const { ok } = await records.commit({ put, expect })
  return ok ? done : 0
}

/**
 * What retires a pack: the mark of its blob, and its record with what goes beside it. Nothing but the mark, with the
 * epoch of now, if it is retired already.
 */
function retired(
  { projectId, generation, sequence }: StoredProject & { readonly sequence: number },
  { key, value }: Entry,
  merge: MergeRecord,
  epoch: number,
): { readonly mark: Entry; readonly changed: readonly Entry[] } {
  const record = decodePackRecord(key, value)
  const markKey = condemnedBlobKey(projectId, packBlobName(projectId, record.packId))
  const mark = { key: markKey, value: encodeCondemnedBlob(markKey, { epoch, isRemoved: false }) }
  if (record.retiredAt !== 0) return { mark, changed: [] }
  const [content, moved] = contentOnceRetired(record, retiredContentKey(projectId, generation, sequence))
  const after = { ...record, content, retiredAt: merge.layout, movedTo: merge.sequence }
  return { mark, changed: [{ key, value: encodePackRecord(key, after) }, ...moved] }
}

/** A pack that lies inside its record moves to a record beside it, since scans read the records of retired packs too. */
function contentOnceRetired({ content }: PackRecord, key: Uint8Array): readonly [PackContent, readonly Entry[]] {
  return typeof content === 'string' ? [content, []] : ['beside', [{ key, value: encodeRetiredContent(key, content) }]]
}

function bytesOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
}

/** The one commit after which readers use the merged pack. */
async function takeEffect(
  parts: FinishParts,
  { project, merge, sources }: OpenMerge,
  ownership: Ownership,
): Promise<void> {
  const { projectId, generation } = project
  const mark = mergeKey(projectId, generation)
  const packRecordKey = packKey(projectId, generation, merge.sequence)
  const key = headKey(projectId)
  const ownTotalsKey = totalsKey(projectId, generation)
  const keys = [key, mark, packRecordKey, ownTotalsKey]
  let values = await parts.records.getMany(keys)
  for (let tries = 1; tries <= ATTEMPTS_MAX; tries++) {
    const [bytes, markValue, packValue, totalsBytes] = values
    const { head } = asHead(key, bytes)
    if (head === undefined || isRemoved(head, generation) || markValue === undefined || packValue === undefined) return
    const pack = decodePackRecord(packRecordKey, packValue)
    if (decodeMerge(mark, markValue).sequence !== merge.sequence || pack.state !== 'merging') return
    const retiredBytes = [...sources.values()].reduce((sum, { packBytes }) => sum + packBytes, 0)
    const storedBytes = (bytes: number): typeof NO_TOTALS => ({ ...NO_TOTALS, storedBytes: bytes })
    const expect = keys.map((expected, i) => ({ key: expected, value: values[i] }))
    const result = await parts.records.commit({
      put: [
        { key, value: encodeHead(key, { ...head, layout: merge.layout }) },
        { key: packRecordKey, value: encodePackRecord(packRecordKey, { ...pack, ...ownership, state: 'applied' }) },
        ...changedTotals(asStoredTotals(ownTotalsKey, totalsBytes), (totals) =>
          subtractTotals(addTotals(totals, storedBytes(pack.packBytes)), storedBytes(retiredBytes)),
        ),
      ],
      remove: [mark],
      expect,
    })
    if (result.ok) return
    values = await afterLostTry(parts, { expect, conflicts: result.conflicts, tries })
  }
  throw tooBusy()
}

function tooBusy(): StowageError {
  return new StowageError('overloaded', 'the project is changed by too many at once; try again shortly', {
    headers: { 'Retry-After': '1' },
  })
}
