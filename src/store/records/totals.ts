import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { ProjectTotals } from '../../object/graph-store.ts'
import type { BlobStore, Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { textBytesOf, type PackTables } from '../pack/pack-format.ts'
import { headKey, keyBounds, keyParts, parseHex, totalsKey } from './keys.ts'
import { objectsHeldBy } from './held-objects.ts'
import { packIn, readTables } from './pack-catalog.ts'
import type { ProjectView, StoredProject } from './project-view.ts'
import { decodePackRecord, isRetired, type PackRecord } from './pack-record.ts'
import { asHead, readHead, type ReadHead } from './projects.ts'
import { decodeTotals, encodeTotals } from './records.ts'

export const NO_TOTALS: ProjectTotals = { objects: 0, jsonBytes: 0, storedBytes: 0 }

interface Parts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
}

/** The totals as they were read, with the expectation for their next change. */
export interface ReadTotals {
  readonly totals: ProjectTotals
  readonly expectation: Expectation
}

/**
 * The totals of a project. The commit of a pack counts all of it; once its ids are written, the objects that another
 * pack holds do not count any more. If the record is missing, after a reindex, the packs are counted.
 */
export async function readTotals(parts: Parts, project: StoredProject): Promise<ReadTotals> {
  const key = totalsKey(project.projectId, project.generation)
  const [value] = await parts.records.getMany([key])
  return asTotals(parts, project, { key, value })
}

/** Both records, for a commit that changes both. `values` are theirs if they are known already. */
export async function readHeadAndTotals(
  parts: Parts,
  project: StoredProject,
  values?: readonly [Uint8Array | undefined, Uint8Array | undefined],
): Promise<ReadHead & ReadTotals> {
  const key = headKey(project.projectId)
  const ownKey = totalsKey(project.projectId, project.generation)
  const [bytes, value] = values ?? (await parts.records.getMany([key, ownKey]))
  const read = asHead(key, bytes)
  const isNew = read.head === undefined || read.head.removed
  const expectation = { key: ownKey, value }
  return { ...read, ...(isNew ? { totals: NO_TOTALS, expectation } : await asTotals(parts, project, expectation)) }
}

async function asTotals(parts: Parts, project: StoredProject, expectation: Expectation): Promise<ReadTotals> {
  const { key, value } = expectation
  return { totals: value === undefined ? await countPacks(parts, project) : decodeTotals(key, value), expectation }
}

/** The contribution of a pack. */
export function packTotals(record: Pick<PackRecord, 'objects' | 'packBytes'>, tables: PackTables): ProjectTotals {
  return {
    objects: record.objects,
    jsonBytes: jsonBytesOf(tables, Bitmap.full(record.objects)),
    storedBytes: record.packBytes,
  }
}

/**
 * The record of the totals: without one they will be counted anew. A commit that changes what they count expects it
 * either way, since they may be counted meanwhile.
 */
export interface StoredTotals {
  readonly totals: ProjectTotals | undefined
  readonly expectation: Expectation
}

export async function readStoredTotals(records: RecordStore, project: StoredProject): Promise<StoredTotals> {
  const key = totalsKey(project.projectId, project.generation)
  const [value] = await records.getMany([key])
  return asStoredTotals(key, value)
}

export function asStoredTotals(key: Uint8Array, value: Uint8Array | undefined): StoredTotals {
  return { totals: value === undefined ? undefined : decodeTotals(key, value), expectation: { key, value } }
}

/** The changed record, for a commit; none if there is none. */
export function changedTotals(
  { totals, expectation: { key } }: StoredTotals,
  change: (totals: ProjectTotals) => ProjectTotals,
): Entry[] {
  return totals === undefined ? [] : [{ key, value: encodeTotals(key, change(totals)) }]
}

/** Never below nothing: a count may be off by what was lost. */
export function subtractTotals(a: ProjectTotals, b: ProjectTotals): ProjectTotals {
  return {
    objects: Math.max(0, a.objects - b.objects),
    jsonBytes: Math.max(0, a.jsonBytes - b.jsonBytes),
    storedBytes: Math.max(0, a.storedBytes - b.storedBytes),
  }
}

export function addTotals(a: ProjectTotals, b: ProjectTotals): ProjectTotals {
  return {
    objects: a.objects + b.objects,
    jsonBytes: a.jsonBytes + b.jsonBytes,
    storedBytes: a.storedBytes + b.storedBytes,
  }
}

async function countPacks(parts: Parts, { projectId, generation }: StoredProject): Promise<ProjectTotals> {
  const { records } = parts
  const { head } = await readHead(records, projectId)
  const project = { projectId, generation, sequence: head?.sequence ?? 0, layout: head?.layout ?? 0 }
  let totals = NO_TOTALS
  for await (const entries of records.range(keyBounds('pack', projectId, generation))) {
    for (const { key, value } of entries) {
      const record = decodePackRecord(key, value)
      totals = addTotals(totals, await totalsOfPack(parts, project, parseHex(keyParts(key)[2]), record))
    }
  }
  return totals
}

/** For a damaged pack only the record is counted: damage to stored data must not keep uploads out. */
async function totalsOfPack(
  { records, blobs, environment }: Parts,
  project: ProjectView,
  sequence: number,
  record: PackRecord,
): Promise<ProjectTotals> {
  const storedBytes = record.packBytes
  if (record.state === 'merging' || isRetired(record, project.layout)) return NO_TOTALS
  try {
    const pack = await packIn(records, project, sequence, record)
    const tables = await readTables(blobs, pack, environment)
    if (record.owned === undefined) return packTotals(record, tables)
    const held = await objectsHeldBy(records, project, pack, tables)
    return { objects: held.count, jsonBytes: jsonBytesOf(tables, held), storedBytes }
  } catch (error) {
    if (!(error instanceof StowageError) || error.code !== 'corrupt_data') throw error
    return { objects: record.objects, jsonBytes: 0, storedBytes }
  }
}

function jsonBytesOf(tables: PackTables, held: Bitmap): number {
  let sum = 0
  for (let ordinal = 0; ordinal < tables.objects; ordinal++) if (held.has(ordinal)) sum += textBytesOf(tables, ordinal)
  return sum
}
