import { KeyedMutex } from '../../async/keyed-mutex.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../environment.ts'
import type { BlobStore, RecordStore, StorageBackend } from '../../storage/backend.ts'
import { Committer } from '../ingest/committer.ts'
import { damage, damageBy, note, type Finding } from './finding.ts'
import { headKey, keyBounds, keyParts, packKey, retiredContentKey, totalsKey } from '../records/keys.ts'
import { packOf, readTables } from '../records/pack-catalog.ts'
import type { StoredProject } from '../records/project-view.ts'
import { encodePackRecord, type PackRecord } from '../records/pack-record.ts'
import { checkStorageFormat } from '../records/storage-format.ts'
import {
  decodeEpoch,
  decodeHead,
  decodeMark,
  decodeTotals,
  encodeHead,
  encodeTotals,
  type ProjectHead,
} from '../records/records.ts'
import { EpochCounter } from './epochs.ts'
import { findPacks, FoundPacks, type FoundPack } from './reindex-find.ts'
import { readTotals } from '../records/totals.ts'
import { garbageEntry } from '../records/projects.ts'
import { removeRecords } from './removal.ts'

interface ReindexParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly found: FoundPacks
  readonly environment: Environment
  /** What the packs of each project had together before, by the key of its totals. */
  readonly counted: ReadonlyMap<string, number>
}

/**
 * Writes the records anew from the packs, and yields its findings on the way. For a storage whose records are damaged
 * or lost. Of several texts for one id the earlier pack's wins. Packs whose records survive come before those that are
 * only found as blobs. Projects that a tombstone names stay removed. Repeatable; findings of damage are lost data. The
 * backend must be open, and nobody else may use it meanwhile. Throws if it cannot work.
 */
export async function* reindexStore(
  { records, blobs }: StorageBackend,
  { environment = REAL_ENVIRONMENT }: { readonly environment?: Environment } = {},
): AsyncGenerator<Finding> {
  await checkStorageFormat(records)
  const found = new FoundPacks()
  yield* findPacks(records, blobs, found)
  const counted = await storedBytesCounted(records)
  yield* dropDerived(records)
  const heads = yield* readHeads(records)
  for (const projectId of new Set([...heads.keys(), ...found.projects.keys(), ...found.buried])) {
    yield* rebuildProject({ records, blobs, found, environment, counted }, projectId, heads.get(projectId))
  }
}

async function storedBytesCounted(records: RecordStore): Promise<ReadonlyMap<string, number>> {
  const counted = new Map<string, number>()
  for await (const entries of records.range(keyBounds('totals'))) {
    for (const { key, value } of entries) {
      try {
        counted.set(keyParts(key).join('\0'), decodeTotals(key, value).storedBytes)
      } catch {
        // Then it is not known whether a pack is lost.
      }
    }
  }
  return counted
}

/**
 * Removes the records that are made anew: places of objects, plans, totals, and marks of what is under way. Points of
 * exports go too: a pack whose record was lost may get a number before them, and whoever continues would miss it.
 */
async function* dropDerived(records: RecordStore): AsyncGenerator<Finding> {
  for (const kind of [
    'object',
    'plan',
    'pending',
    'totals',
    'merge',
    'collection',
    'exportPoint',
    'condemnedBlob',
    'lease',
  ] as const) {
    for await (const entries of records.range(keyBounds(kind))) await removeRecords(records, entries)
  }
  for await (const entries of records.range(keyBounds('epoch'))) {
    for (const entry of entries) {
      try {
        decodeEpoch(entry.key, entry.value)
      } catch (error) {
        // Epochs begin anew: what waits for the end of its grace waits longer.
        yield damageBy(error, undefined, 'epoch record')
        await removeRecords(records, [entry])
      }
    }
  }
  for await (const entries of records.range(keyBounds('garbage'))) {
    for (const entry of entries) {
      try {
        decodeMark(entry.key, entry.value)
      } catch (error) {
        yield damageBy(error, keyParts(entry.key)[0], 'mark of a removed project')
        await removeRecords(records, [entry])
      }
    }
  }
}

/** The projects' records; those that cannot be read are removed. */
async function* readHeads(records: RecordStore): AsyncGenerator<Finding, Map<string, ProjectHead>> {
  const heads = new Map<string, ProjectHead>()
  for await (const entries of records.range(keyBounds('head'))) {
    for (const entry of entries) {
      const [projectId] = keyParts(entry.key)
      try {
        heads.set(projectId, decodeHead(entry.key, entry.value))
      } catch (error) {
        yield damageBy(error, projectId, 'project record')
        await removeRecords(records, [entry])
      }
    }
  }
  return heads
}

async function* rebuildProject(
  parts: ReindexParts,
  projectId: string,
  head: ProjectHead | undefined,
): AsyncGenerator<Finding> {
  const { records, found } = parts
  const packs = found.packsOf(projectId)
  const removedUpTo = Math.max(
    found.buriedGeneration(projectId),
    head === undefined ? 0 : head.generation - (head.removed ? 0 : 1),
  )
  const generation = Math.max(removedUpTo, head?.generation ?? 0, ...packs.map((pack) => pack.generation))
  const isGone = generation === removedUpTo
  const swept = new Set(packs.map((pack) => pack.generation).filter((old) => old < generation || isGone))
  await records.insertMany([...swept].map((old) => garbageEntry(projectId, old)))
  if (isGone) {
    await putHead(records, projectId, {
      generation,
      sequence: head?.sequence ?? 1,
      removed: true,
      layout: head?.layout ?? 0,
    })
    yield note(projectId, 'project', 'it was removed, and stays removed')
    return
  }
  const from = head?.generation === generation ? head : { sequence: 1, layout: 0 }
  yield* rebuildGeneration(parts, projectId, generation, from)
}

async function* rebuildGeneration(
  parts: ReindexParts,
  projectId: string,
  generation: number,
  { sequence, layout }: Pick<ProjectHead, 'sequence' | 'layout'>,
): AsyncGenerator<Finding> {
  const { records, blobs, found, environment, counted } = parts
  const packs = inOrder(found.packsOf(projectId).filter((pack) => pack.generation === generation))
  let next = Math.max(sequence, ...packs.map((pack) => (pack.sequence ?? 0) + 1))
  const numbered = packs.map(({ record, sequence }) => ({
    projectId,
    generation,
    sequence: sequence ?? next++,
    record,
  }))
  await putHead(records, projectId, { generation, sequence: next, removed: false, layout: layout + 1 })
  const committer = new Committer({ records, blobs, environment, turns: new KeyedMutex() })
  const epoch = await new EpochCounter(records, environment).recent()
  let objects = 0
  for (const pack of numbered) {
    try {
      objects += await reapply(parts, committer, { ...pack, record: asUploaded(pack.record, epoch) })
    } catch (error) {
      yield damageBy(error, projectId, `pack ${pack.record.packId}`, (message) => `it cannot be used: ${message}`)
    }
  }
  const storedBytes = await putTotals({ records, blobs, environment }, { projectId, generation })
  const lostBytes = (counted.get(keyParts(totalsKey(projectId, generation)).join('\0')) ?? 0) - storedBytes
  if (lostBytes > 0)
    yield damage(projectId, 'packs of the project', `packs of ${lostBytes} bytes are lost with their records`)
  yield note(projectId, 'project', `${objects} objects in ${numbered.length} packs`)
}

/** All of its objects count as held and as written now: what was condemned is collected again later. */
function asUploaded(record: PackRecord, epoch: number): PackRecord {
  return {
    ...record,
    state: 'committed',
    epoch,
    owned: undefined,
    condemned: undefined,
    reached: undefined,
    lastOrdinals: [],
    activeAt: 0,
    retiredAt: 0,
    movedTo: 0,
  }
}

/**
 * Packs whose records survive, by their number; then the others, by the time that they carry. Packs that were merged
 * into another, and a merge that was under way, come last: they then hold only what is nowhere else.
 */
function inOrder(packs: FoundPack[]): FoundPack[] {
  const numberOf = (pack: FoundPack): number => pack.sequence ?? Number.MAX_SAFE_INTEGER
  const isCopy = ({ record }: FoundPack): number => (record.state === 'merging' || record.retiredAt > 0 ? 1 : 0)
  return packs.sort(
    (a, b) =>
      isCopy(a) - isCopy(b) ||
      numberOf(a) - numberOf(b) ||
      a.timeMs - b.timeMs ||
      (a.record.packId < b.record.packId ? -1 : 1),
  )
}

async function reapply(
  { records, blobs, environment }: Pick<ReindexParts, 'records' | 'blobs' | 'environment'>,
  committer: Committer,
  pack: Parameters<Committer['apply']>[0],
): Promise<number> {
  const tables = await readTables(blobs, await packOf(records, pack), environment)
  await putPack(records, pack.projectId, pack.generation, pack.sequence, pack.record)
  const applied = await committer.apply(pack, tables)
  return applied.record.owned?.count ?? 0
}

/** What lay beside the record is inside it again. */
async function putPack(
  records: RecordStore,
  projectId: string,
  generation: number,
  sequence: number,
  record: PackRecord,
): Promise<void> {
  const key = packKey(projectId, generation, sequence)
  await records.commit({
    put: [{ key, value: encodePackRecord(key, record) }],
    remove: [retiredContentKey(projectId, generation, sequence)],
  })
}

async function putTotals(
  parts: Pick<ReindexParts, 'records' | 'blobs' | 'environment'>,
  project: StoredProject,
): Promise<number> {
  const {
    totals,
    expectation: { key },
  } = await readTotals(parts, project)
  await parts.records.commit({ put: [{ key, value: encodeTotals(key, totals) }] })
  return totals.storedBytes
}

async function putHead(records: RecordStore, projectId: string, head: ProjectHead): Promise<void> {
  const key = headKey(projectId)
  await records.commit({ put: [{ key, value: encodeHead(key, head) }] })
}
