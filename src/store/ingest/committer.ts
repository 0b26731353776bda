import { StowageError } from '../../errors.ts'
import { DIFFERING_IDS_MAX, type ProjectTotals } from '../../object/graph-store.ts'
import type { BlobStore, Entry, RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { headKey, objectKeyMaker, packKey, pendingKey } from '../records/keys.ts'
import { LOOKUP_KEYS } from '../records/locator.ts'
import { tableEntry, type PackTables } from '../pack/pack-format.ts'
import { addTotals, packTotals, readHeadAndTotals } from '../records/totals.ts'
import type { QuotaReservation } from './quotas.ts'
import { garbageEntry, isRemoved, readHead, writingGeneration } from '../records/projects.ts'

import {
  decodeObjectRecord,
  decodePackRecord,
  encodeHead,
  encodeMark,
  encodeObjectRecord,
  encodePackRecord,
  encodeTotals,
  type PackRecord,
} from '../records/records.ts'

const ATTEMPTS_MAX = 100

/** A pack whose commit point is behind it. */
export interface CommittedPack {
  readonly projectId: string
  readonly generation: number
  readonly sequence: number
  readonly record: PackRecord
}

export interface AppliedPack extends CommittedPack {
  /** Objects that turned out to be held by another pack, with another text. */
  readonly differing: number
  /** The ids of the first of these. */
  readonly differingIds: readonly string[]
}

/** Makes packs visible: one small commit, then the ids, then the note that all ids are there. */
export class Committer {
  readonly #records: RecordStore
  readonly #blobs: BlobStore
  /** The last commit of each project that has one under way: they would only fail each other's expectations. */
  readonly #tails = new Map<string, Promise<unknown>>()

  constructor(records: RecordStore, blobs: BlobStore) {
    this.#records = records
    this.#blobs = blobs
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
    const added = packTotals(record, counted.tables)
    const before = this.#tails.get(projectId) ?? Promise.resolve()
    const commit = before
      .catch(() => undefined)
      .then(() => this.#commitNext({ projectId, generation, record }, added, counted.quota))
    this.#tails.set(projectId, commit)
    try {
      return await commit
    } finally {
      if (this.#tails.get(projectId) === commit) this.#tails.delete(projectId)
    }
  }

  async #commitNext(
    { projectId, generation, record }: Omit<CommittedPack, 'sequence'>,
    added: ProjectTotals,
    quota: QuotaReservation | undefined,
  ): Promise<CommittedPack> {
    const parts = { records: this.#records, blobs: this.#blobs }
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { key, bytes, head, totals, expectation } = await readHeadAndTotals(parts, { projectId, generation })
      if (writingGeneration(head) !== generation) throw projectRemoved()
      const sequence = head === undefined || head.removed ? 1 : head.sequence
      const recordKey = packKey(projectId, generation, sequence)
      quota?.check(added, totals)
      const put = [
        { key: headKey(projectId), value: encodeHead(key, { generation, sequence: sequence + 1, removed: false }) },
        { key: recordKey, value: encodePackRecord(recordKey, record) },
        pendingEntry(projectId, generation, sequence),
        { key: expectation.key, value: encodeTotals(expectation.key, addTotals(totals, added)) },
      ]
      const result = await this.#records.commit({
        put,
        expect: [{ key, value: bytes }, { key: recordKey, value: undefined }, expectation],
      })
      if (result.ok) return { projectId, generation, sequence, record }
    }
    throw new StowageError(
      'overloaded',
      'too many uploads to this project are being committed at once; try again shortly',
      { headers: { 'Retry-After': '1' } },
    )
  }

  /**
   * Writes id -> pack for each object and then marks the pack as applied. Repeatable, also by several at the same time:
   * if another pack holds an id, that one wins.
   */
  async apply(pack: CommittedPack, tables: PackTables): Promise<AppliedPack> {
    const owned = Bitmap.full(pack.record.objects)
    let differing = 0
    const differingIds: string[] = []
    for (let first = 0; first < tables.objects; first += LOOKUP_KEYS) {
      const entries = objectEntries(pack, tables, first, Math.min(tables.objects, first + LOOKUP_KEYS))
      const held = await this.#records.insertMany(entries)
      for (const [i, value] of held.entries()) {
        if (value === undefined) continue
        const location = decodeObjectRecord(entries[i].key, value)
        if (location.sequence === pack.sequence) continue
        owned.delete(first + i)
        const own = decodeObjectRecord(entries[i].key, entries[i].value)
        if (own.textBytes === location.textBytes && own.textCrc32 === location.textCrc32) continue
        if (differing++ < DIFFERING_IDS_MAX)
          differingIds.push(Buffer.from(tableEntry(tables.ids, first + i)).toString('utf8'))
      }
    }
    const record = await this.#noteApplied(pack, { ...pack.record, state: 'applied', owned })
    return { ...pack, record, differing, differingIds }
  }

  async #noteApplied(pack: CommittedPack, applied: PackRecord): Promise<PackRecord> {
    const key = packKey(pack.projectId, pack.generation, pack.sequence)
    const result = await this.#records.commit({
      put: [{ key, value: encodePackRecord(key, applied) }],
      remove: [pendingKey(pack.projectId, pack.generation, pack.sequence)],
      expect: [{ key, value: encodePackRecord(key, pack.record) }],
    })
    if (result.ok) return applied
    const [value] = await this.#records.getMany([key])
    if (value !== undefined) return decodePackRecord(key, value)
    const { head } = await readHead(this.#records, pack.projectId)
    if (!isRemoved(head, pack.generation))
      throw corrupt(`the record of pack ${pack.sequence} is missing, though it was committed`)
    // Ids may have been written behind the sweep that took the pack: it must come again.
    await this.#records.insertMany([garbageEntry(pack.projectId, pack.generation)])
    throw projectRemoved()
  }
}

function pendingEntry(projectId: string, generation: number, sequence: number): Entry {
  const key = pendingKey(projectId, generation, sequence)
  return { key, value: encodeMark(key) }
}

function objectEntries(pack: CommittedPack, tables: PackTables, first: number, end: number): Entry[] {
  const keyOf = objectKeyMaker(pack.projectId, pack.generation)
  const entries: Entry[] = []
  for (let ordinal = first; ordinal < end; ordinal++) {
    const id = tableEntry(tables.ids, ordinal)
    const key = keyOf(id)
    const location = {
      sequence: pack.sequence,
      ordinal,
      textBytes: tables.lineBytes[ordinal] - id.length - 2,
      textCrc32: tables.textCrc32[ordinal],
    }
    entries.push({ key, value: encodeObjectRecord(key, location) })
  }
  return entries
}

/** For an upload whose project was removed while it was on its way. */
export function projectRemoved(): StowageError {
  return new StowageError(
    'project_removed',
    'the project was removed while this upload was on its way; nothing of it was kept',
  )
}
