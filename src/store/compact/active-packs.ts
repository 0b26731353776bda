import { PACKED_ID_BYTES } from '../../object/hex-id.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { keyBounds, keyParts, parseHex } from '../records/keys.ts'
import { decodePackRecord, isActive, isRetired, type PackRecord } from '../records/pack-record.ts'
import type { ProjectView } from '../records/project-view.ts'
import { viewProject } from '../records/projects.ts'
import { UNPACKED_BYTES } from '../pack/stored-ids.ts'
import { heldBytesOf } from './begin-merge.ts'
import type { PackSize } from './choose.ts'

/** Interning ids and then compressing the tables takes this many times the bytes of the tables of all sources, about. */
const MEMORY_PER_TABLES = 3
/** The tables of merged packs are stored compressed. */
const INFLATED_SHARE = 3
/** What an id of 32 hex digits takes in memory, and does not take in storage. */
const UNPACKED_ID_BYTES = UNPACKED_BYTES - PACKED_ID_BYTES

/** A pack that readers use, and what its merge would take. */
export interface ActivePack extends PackSize {
  readonly packId: string
  /** The epoch of the merge that made it. */
  readonly mergedAt: number
}

/** The packs of a project, as their records are now. */
export interface ProjectPacks {
  /** `undefined` if the project does not exist any more. */
  readonly project: ProjectView | undefined
  readonly active: readonly ActivePack[]
  readonly retiredBytes: number
}

/** Reads the record of each pack of a project. Records of small packs contain the packs: call it seldom. */
export async function readPacks(records: RecordStore, projectId: string, signal: AbortSignal): Promise<ProjectPacks> {
  const project = await viewProject(records, projectId, signal)
  const active: ActivePack[] = []
  let retiredBytes = 0
  if (project === undefined) return { project, active, retiredBytes }
  for await (const entries of records.range(keyBounds('pack', projectId, project.generation), { signal })) {
    for (const { key, value } of entries) {
      const record = decodePackRecord(key, value)
      if (isActive(record, project.layout)) active.push(activePack(parseHex(keyParts(key)[2]), record))
      else if (isRetired(record, project.layout)) retiredBytes += record.packBytes
    }
  }
  return { project, active, retiredBytes }
}

function activePack(sequence: number, record: PackRecord): ActivePack {
  const { packId, objects, packBytes, owned, condemned, sources, epoch } = record
  const liveObjects = (owned?.count ?? 0) + (condemned?.count ?? 0)
  const liveBytes = objects === 0 ? 0 : Math.round((packBytes * liveObjects) / objects)
  const isMerged = sources.length > 0
  const storedTablesBytes = packBytes - record.tablesStart
  const tablesBytes = isMerged ? storedTablesBytes * INFLATED_SHARE : storedTablesBytes + objects * UNPACKED_ID_BYTES
  const memoryBytes =
    heldBytesOf(record) + (objects === 0 ? 0 : MEMORY_PER_TABLES * tablesBytes * (liveObjects / objects))
  const mergedAt = isMerged ? epoch : -Infinity
  return { sequence, packId, objects, liveObjects, packBytes, liveBytes, memoryBytes, mergedAt }
}

/** How many packs there are, and how large they are together. */
export function measured(packs: readonly PackSize[]): { readonly packs: number; readonly storedBytes: number } {
  return { packs: packs.length, storedBytes: packs.reduce((sum, { packBytes }) => sum + packBytes, 0) }
}
