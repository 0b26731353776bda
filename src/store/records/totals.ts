import { StowageError } from '../../errors.ts'
import type { ProjectTotals } from '../../object/graph-store.ts'
import type { BlobStore, Expectation, RecordStore } from '../../storage/backend.ts'
import type { PackTables } from '../pack/pack-format.ts'
import { headKey, keyBounds, keyParts, parseHex, totalsKey } from './keys.ts'
import { type Pack, packOf, readTables } from './pack-catalog.ts'
import type { ReadHead } from './projects.ts'
import { decodeHead, decodePackRecord, decodeTotals, type PackRecord } from './records.ts'

export const NO_TOTALS: ProjectTotals = { objects: 0, jsonBytes: 0, storedBytes: 0 }

interface Parts {
  readonly records: RecordStore
  readonly blobs: BlobStore
}

export interface Generation {
  readonly projectId: string
  readonly generation: number
}

/** The totals as they were read, with the expectation for their next change. */
export interface ReadTotals {
  readonly totals: ProjectTotals
  readonly expectation: Expectation
}

/**
 * The totals of the packs of a project. Each commit of a pack changes this record too. If it is missing, after a
 * reindex, the packs are counted. An object that two uploads brought at the same time lies in two packs, and counts
 * twice.
 */
export async function readTotals(parts: Parts, project: Generation): Promise<ReadTotals> {
  const key = totalsKey(project.projectId, project.generation)
  const [value] = await parts.records.getMany([key])
  return asTotals(parts, project, { key, value })
}

/** Both records in one call, for a commit that changes both. */
export async function readHeadAndTotals(parts: Parts, project: Generation): Promise<ReadHead & ReadTotals> {
  const key = headKey(project.projectId)
  const ownKey = totalsKey(project.projectId, project.generation)
  const [bytes, value] = await parts.records.getMany([key, ownKey])
  const head = bytes === undefined ? undefined : decodeHead(key, bytes)
  const isNew = head === undefined || head.removed
  const expectation = { key: ownKey, value }
  return {
    key,
    bytes,
    head,
    ...(isNew ? { totals: NO_TOTALS, expectation } : await asTotals(parts, project, expectation)),
  }
}

async function asTotals(parts: Parts, project: Generation, expectation: Expectation): Promise<ReadTotals> {
  const { key, value } = expectation
  return { totals: value === undefined ? await countPacks(parts, project) : decodeTotals(key, value), expectation }
}

/** The contribution of a pack. */
export function packTotals(record: Pick<PackRecord, 'objects' | 'packBytes'>, tables: PackTables): ProjectTotals {
  return { objects: record.objects, jsonBytes: jsonBytesOf(tables), storedBytes: record.packBytes }
}

export function addTotals(a: ProjectTotals, b: ProjectTotals): ProjectTotals {
  return {
    objects: a.objects + b.objects,
    jsonBytes: a.jsonBytes + b.jsonBytes,
    storedBytes: a.storedBytes + b.storedBytes,
  }
}

async function countPacks({ records, blobs }: Parts, { projectId, generation }: Generation): Promise<ProjectTotals> {
  let totals = NO_TOTALS
  for await (const entries of records.range(keyBounds('pack', projectId, generation))) {
    for (const { key, value } of entries) {
      const pack = packOf(projectId, parseHex(keyParts(key)[2]), decodePackRecord(key, value))
      totals = addTotals(totals, await totalsOfPack(blobs, pack))
    }
  }
  return totals
}

/** For a damaged pack only the record is counted: damage to stored data must not keep uploads out. */
async function totalsOfPack(blobs: BlobStore, pack: Pack): Promise<ProjectTotals> {
  try {
    return packTotals(pack.record, await readTables(blobs, pack))
  } catch (error) {
    if (!(error instanceof StowageError) || error.code !== 'corrupt_data') throw error
    return { objects: pack.record.objects, jsonBytes: 0, storedBytes: pack.record.packBytes }
  }
}

/** A line is the id, a tab, the text and a line end. */
function jsonBytesOf({ lineBytes, ids, objects }: PackTables): number {
  let sum = 0
  for (const bytes of lineBytes) sum += bytes
  return sum - (ids.ends.at(-1) ?? 0) - 2 * objects
}
