import type { Environment } from '../../environment.ts'
import type { KeyedMutex } from '../../async/keyed-mutex.ts'
import { StowageError } from '../../errors.ts'
import { DIFFERING_IDS_MAX, type ProjectTotals } from '../../object/graph-store.ts'
import type { BlobStore, Change, CommitResult, Entry, RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { linePlaces } from '../pack/line-places.ts'
import { unreferencedOrdinals } from '../pack/unreferenced.ts'
import { tableEntry, textBytesOf, type PackTables } from '../pack/pack-format.ts'
import { changeObjects } from '../records/change-objects.ts'
import type { CommittedPack } from '../records/committed-pack.ts'
import { condemnedBlobKey, headKey, objectKeyMaker, packBlobName, packKey, pendingKey } from '../records/keys.ts'
import { LOOKUP_KEYS } from '../records/locator.ts'
import { afterLostTry, areAsExpected } from '../records/lost-try.ts'
import { decodeObjectRecord, encodeObjectRecord, type ObjectRecord } from '../records/object-record.ts'
import { decodePackRecord, encodePackRecord, LAST_ORDINALS_MAX, type PackRecord } from '../records/pack-record.ts'
import { firstPending, garbageEntryAgain, isRemoved, readHead, writingGeneration } from '../records/projects.ts'
import { encodeHead, encodeMark, encodeTotals } from '../records/records.ts'
import {
  addTotals,
  asStoredTotals,
  changedTotals,
  packTotals,
  readHeadAndTotals,
  readStoredTotals,
  subtractTotals,
} from '../records/totals.ts'
import type { QuotaReservation } from './quotas.ts'
import { takeOver } from './take-over.ts'

const ATTEMPTS_MAX = 100

export interface AppliedPack extends CommittedPack {
  /** Objects that turned out to be held by another pack, with another text. */
  readonly differing: number
  /** The ids of the first of these. */
  readonly differingIds: readonly string[]
}

export interface CommitterParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
  /** Commits of one project that expect its head or its totals: in one process they would only fail each other. */
  readonly turns: KeyedMutex
}

/** Makes packs visible: one small commit, then the ids, then the note that all ids are there. */
export class Committer {
  readonly #parts: CommitterParts

  constructor(parts: CommitterParts) {
    this.#parts = parts
  }

  /**
   * The commit point: the pack's record with the next number of the project's sequence, and the project's totals.
   * Throws `project_removed` when the project was removed since `generation` was read, and `quota_exceeded`.
   */
  async commit(
    projectId: string,
    generation: number,
    record: PackRecord,
    counted: { readonly tables: PackTables; readonly quota: QuotaReservation | undefined },
  ): Promise<CommittedPack> {
    const { tables, quota } = counted
    const unreferenced = unreferencedOrdinals(tables)
    const last = unreferenced.length > LAST_ORDINALS_MAX ? [] : unreferenced
    const added = packTotals(record, tables)
    return this.#parts.turns.run(projectId, () =>
      this.#commitNext({ projectId, generation, record }, { added, last, quota }),
    )
  }

  async #commitNext(pack: Omit<CommittedPack, 'sequence'>, { added, last, quota }: PackFacts): Promise<CommittedPack> {
    const { projectId, generation } = pack
    const [headAndTotals, pending] = await Promise.all([
      readHeadAndTotals(this.#parts, { projectId, generation }),
      firstPending(this.#parts.records, { projectId, generation }),
    ])
    let read = headAndTotals
    let record = pending === undefined ? { ...pack.record, lastOrdinals: last } : pack.record
    for (let tries = 1; tries <= ATTEMPTS_MAX; tries++) {
      const { key, bytes, head, totals, expectation } = read
      if (writingGeneration(head) !== generation) throw projectRemoved()
      const { sequence, layout } = head === undefined || head.removed ? { sequence: 1, layout: 0 } : head
      const recordKey = packKey(projectId, generation, sequence)
      quota?.check(added, totals)
      const next = { generation, sequence: sequence + 1, removed: false, layout }
      const put = [
        { key: headKey(projectId), value: encodeHead(key, next) },
        { key: recordKey, value: encodePackRecord(recordKey, record) },
        pendingEntry(projectId, generation, sequence),
        { key: expectation.key, value: encodeTotals(expectation.key, addTotals(totals, added)) },
      ]
      const expect = [{ key, value: bytes }, expectation, { key: recordKey, value: undefined }]
      const result = await this.#commitPack({ projectId, generation, record, sequence }, { put, expect })
      if (result.ok) return { projectId, generation, sequence, record }
      const [headBytes, totalsBytes] = await afterLostTry(this.#parts, { expect, conflicts: result.conflicts, tries })
      read = await readHeadAndTotals(this.#parts, { projectId, generation }, [headBytes, totalsBytes])
      // Another pack may have been committed, and not be applied yet.
      record = pack.record
    }
    throw new StowageError(
      'overloaded',
      'too many uploads to this project are being committed at once; try again shortly',
      { headers: { 'Retry-After': '1' } },
    )
  }

  /** Makes the commit; if it failed and may have been made all the same, the storage is asked. */
  async #commitPack(pack: CommittedPack, change: Required<Pick<Change, 'put' | 'expect'>>): Promise<CommitResult> {
    const { projectId, record } = pack
    const isBlob = record.content === 'blob'
    const mark = condemnedBlobKey(projectId, packBlobName(projectId, record.packId))
    const expect = isBlob ? [...change.expect, { key: mark, value: undefined }] : change.expect
    try {
      const result = await this.#parts.records.commit({ ...change, expect })
      if (!result.ok && result.conflicts.some(({ index }) => index === change.expect.length)) throw sweptMeanwhile()
      return result
    } catch (error) {
      if (await this.#isCommitted(pack)) return { ok: true }
      throw error
    }
  }

  /** Whether the record of the pack is there; no if the storage does not say. */
  async #isCommitted({ projectId, generation, sequence, record }: CommittedPack): Promise<boolean> {
    const key = packKey(projectId, generation, sequence)
    const [value] = await this.#parts.records.getMany([key]).catch(() => [undefined])
    return value !== undefined && decodePackRecord(key, value).packId === record.packId
  }

  /**
   * Writes id -> pack for each object and then marks the pack as applied. Repeatable, also by several at the same time:
   * if another pack holds an id, that one wins, unless the object is condemned.
   */
  async apply(pack: CommittedPack, tables: PackTables): Promise<AppliedPack> {
    const { objects, lastOrdinals } = pack.record
    const wrote = { tables, owned: Bitmap.full(objects), differing: 0, differingIds: [] }
    for (let first = 0; first < tables.objects; first += LOOKUP_KEYS) {
      const own = objectEntries(pack, tables, first, Math.min(tables.objects, first + LOOKUP_KEYS))
      const others = own.filter(({ record }) => !lastOrdinals.includes(record.ordinal))
      await this.#writeSome(pack, lastOrdinals.length === 0 ? own : others, wrote)
    }
    const last = lastOrdinals.flatMap((ordinal) => objectEntries(pack, tables, ordinal, ordinal + 1))
    const applied = last.length === 0 ? undefined : await this.#noteApplied(pack, pack.record, wrote, last)
    if (applied !== undefined) return { ...pack, ...wrote, record: applied }
    await this.#writeSome(pack, last, wrote)
    const record = await this.#noteApplied(pack, { ...pack.record, lastOrdinals: [] }, wrote, [])
    return { ...pack, ...wrote, record: record ?? pack.record }
  }

  async #writeSome(pack: CommittedPack, own: readonly OwnObject[], wrote: Written): Promise<void> {
    if (own.length === 0) return
    const held = await this.#write(pack, own)
    for (const [i, record] of held.entries()) {
      const { ordinal, textBytes, textCrc32 } = own[i].record
      if (record === undefined || record.sequence === pack.sequence) continue
      wrote.owned.delete(ordinal)
      if (textBytes === record.textBytes && textCrc32 === record.textCrc32) continue
      if (wrote.differing++ < DIFFERING_IDS_MAX) wrote.differingIds.push(Buffer.from(own[i].id).toString('utf8'))
    }
  }

  /**
   * Writes the records of objects that have none, and of condemned ones; returns those that were there before, and
   * `undefined` for each that was written.
   */
  async #write(pack: CommittedPack, own: readonly OwnObject[]): Promise<(ObjectRecord | undefined)[]> {
    const values = await this.#parts.records.insertMany(own.map(({ entry }) => entry))
    const held = values.map((value, i) => value && decodeObjectRecord(own[i].entry.key, value))
    const condemned = held.flatMap((record, i) =>
      record?.state === 'condemned' && record.sequence !== pack.sequence ? [i] : [],
    )
    if (condemned.length === 0) return held
    const { after, changed } = await takeOver(
      this.#parts,
      pack,
      condemned.map((i) => own[i]),
    )
    for (const [at, i] of condemned.entries()) held[i] = after[at]
    for (const at of changed) held[condemned[at]] = undefined
    return held
  }

  /** Writes the records of the last objects, too. `undefined` if there is one of them already: then nothing is changed. */
  #noteApplied(
    pack: CommittedPack,
    record: PackRecord,
    wrote: Written,
    last: readonly OwnObject[],
  ): Promise<PackRecord | undefined> {
    const applied: PackRecord = { ...record, state: 'applied', owned: wrote.owned }
    const foreign = foreignTotals(applied, wrote.tables)
    const note = (): Promise<PackRecord | undefined> => this.#noteCounted(pack, applied, wrote, { foreign, last })
    return foreign.objects === 0 ? note() : this.#parts.turns.run(pack.projectId, note)
  }

  async #noteCounted(
    pack: CommittedPack,
    applied: PackRecord,
    wrote: Written,
    { foreign, last }: { readonly foreign: ProjectTotals; readonly last: readonly OwnObject[] },
  ): Promise<PackRecord | undefined> {
    const { records } = this.#parts
    const key = packKey(pack.projectId, pack.generation, pack.sequence)
    let totals = foreign.objects === 0 ? undefined : await readStoredTotals(records, pack)
    for (let tries = 1; tries <= ATTEMPTS_MAX; tries++) {
      const lowered = totals === undefined ? [] : changedTotals(totals, (stored) => subtractTotals(stored, foreign))
      const own = [
        { key, value: encodePackRecord(key, pack.record) },
        ...last.map(({ entry }) => ({ key: entry.key, value: undefined })),
      ]
      const expect = totals === undefined ? own : [...own, totals.expectation]
      const result = await records.commit({
        put: [...last.map(({ entry }) => entry), { key, value: encodePackRecord(key, applied) }, ...lowered],
        remove: [pendingKey(pack.projectId, pack.generation, pack.sequence)],
        expect,
      })
      if (result.ok) return applied
      const found = await afterLostTry(this.#parts, { expect, conflicts: result.conflicts, tries })
      if (!areAsExpected(found, own.slice(0, 1))) return this.#appliedByAnother(pack, applied, wrote)
      if (!areAsExpected(found, own)) return undefined
      totals = totals && asStoredTotals(totals.expectation.key, found[own.length])
    }
    throw new StowageError('overloaded', 'the project is changed by too many at once; try again shortly')
  }

  /**
   * Another server applied the pack first. If that was long ago, objects of it may be gone since, or lie in a merged
   * pack. This call, or one before it that failed in between, may have written records for them once more: these go
   * again.
   */
  async #appliedByAnother(pack: CommittedPack, applied: PackRecord, { tables }: Written): Promise<PackRecord> {
    const { records } = this.#parts
    const key = packKey(pack.projectId, pack.generation, pack.sequence)
    const [value] = await records.getMany([key])
    if (value === undefined) {
      const { head } = await readHead(records, pack.projectId)
      if (isRemoved(head, pack.generation)) {
        // Ids may have been written behind the sweep that took the pack: it must come again.
        await records.commit({ put: [garbageEntryAgain(pack, this.#parts.environment)] })
        throw projectRemoved()
      }
    }
    const current = value === undefined ? undefined : decodePackRecord(key, value)
    const holding = current?.retiredAt === 0 ? current : undefined
    const stray: Uint8Array[] = []
    for (let ordinal = 0; ordinal < tables.objects; ordinal++) {
      const isHere = holding?.owned?.has(ordinal) === true || holding?.condemned?.has(ordinal) === true
      if (!isHere) stray.push(tableEntry(tables.ids, ordinal))
    }
    await changeObjects(this.#parts, pack, stray, (record) => (record?.sequence === pack.sequence ? undefined : 'keep'))
    return current ?? applied
  }
}

interface OwnObject {
  readonly id: Uint8Array
  readonly record: ObjectRecord
  readonly entry: Entry
}

interface PackFacts {
  readonly added: ProjectTotals
  /** Objects that shall become visible last. */
  readonly last: readonly number[]
  readonly quota: QuotaReservation | undefined
}

interface Written {
  readonly tables: PackTables
  /** Objects that no other pack holds. */
  readonly owned: Bitmap
  differing: number
  readonly differingIds: string[]
}

/** What other packs hold of the contents of this one: the commit counted it. */
function foreignTotals({ objects, owned }: PackRecord, tables: PackTables): ProjectTotals {
  let jsonBytes = 0
  for (let ordinal = 0; ordinal < objects; ordinal++)
    if (owned?.has(ordinal) !== true) jsonBytes += textBytesOf(tables, ordinal)
  return { objects: objects - (owned?.count ?? 0), jsonBytes, storedBytes: 0 }
}

function pendingEntry(projectId: string, generation: number, sequence: number): Entry {
  const key = pendingKey(projectId, generation, sequence)
  return { key, value: encodeMark(key) }
}

function objectEntries(pack: CommittedPack, tables: PackTables, first: number, end: number): OwnObject[] {
  const keyOf = objectKeyMaker(pack.projectId, pack.generation)
  const objects: OwnObject[] = []
  let ordinal = first
  for (const { blockStart, blockStoredBytes, blockRawBytes, lineStart } of linePlaces(tables, first, end)) {
    const id = tableEntry(tables.ids, ordinal)
    const key = keyOf(id)
    const record: ObjectRecord = {
      state: 'live',
      epoch: pack.record.epoch,
      sequence: pack.sequence,
      ordinal,
      blockStart,
      blockStoredBytes,
      blockRawBytes,
      lineStart,
      textBytes: textBytesOf(tables, ordinal),
      textCrc32: tables.textCrc32[ordinal],
    }
    objects.push({ id, record, entry: { key, value: encodeObjectRecord(key, record) } })
    ordinal++
  }
  return objects
}

function sweptMeanwhile(): StowageError {
  return new StowageError(
    'overloaded',
    'the upload took so long that its pack was swept as a leftover; nothing of it was kept: send it again',
    { headers: { 'Retry-After': '1' } },
  )
}

/** For an upload whose project was removed while it was on its way. */
export function projectRemoved(): StowageError {
  return new StowageError('project_removed', 'the project was removed during this upload; nothing of it was stored')
}
