import { REAL_ENVIRONMENT, type Environment } from '../../environment.ts'
import type { RecordStore, StorageBackend } from '../../storage/backend.ts'
import { CLUSTER_FOLDER } from '../../storage/cluster-id.ts'
import { checkBlocks, readWholeTables } from './check-pack.ts'
import { checkPlan } from './check-plan.ts'
import { lostPacksAtOnce } from './check-running.ts'
import { CheckState } from './check-state.ts'
import { damage, damageBy, note, type Finding } from './finding.ts'
import { isOfExtension, keyBounds, keyParts, objectKeyParts, packBlobName, parseHex } from '../records/keys.ts'
import { locate, LOOKUP_KEYS } from '../records/locator.ts'
import { decodeObjectRecord } from '../records/object-record.ts'
import { packOf, type Pack } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePackRecord, isActive } from '../records/pack-record.ts'
import { decodeExportPoint } from '../records/export-points.ts'
import { checkStorageFormat } from '../records/storage-format.ts'
import { tableEntry, type PackTables } from '../pack/pack-format.ts'
import {
  checkLease,
  decodeCondemnedBlob,
  decodeEpoch,
  decodeHead,
  decodeMark,
  decodeCollection,
  decodeMerge,
  decodePin,
  decodeTotals,
} from '../records/records.ts'
import { isTombstone, readTombstone, unreadableTombstone } from './tombstone.ts'

export interface CheckOptions {
  /** Reads one of this many blocks; tables and records are always read whole. Default 1: every block. */
  readonly sampleEvery?: number
  /** Servers may write meanwhile: `confirmedFindings` tells damage from what they change. */
  readonly isRunning?: boolean
  readonly signal?: AbortSignal
  /** That of the process by default. */
  readonly environment?: Environment
}

interface CheckParts extends Pick<StorageBackend, 'records' | 'blobs'> {
  readonly state: CheckState
  readonly every: number
  readonly isRunning: boolean
  readonly signal: AbortSignal
  readonly environment: Environment
}

/**
 * Reads a whole storage and yields its faults; nothing is changed. The backend must be open, and no server may write to
 * it meanwhile, unless `isRunning` says so. Without findings of severity `damage`, every acknowledged object is present and whole. Throws if the
 * storage cannot be read.
 */
export async function* checkStore(backend: StorageBackend, options: CheckOptions = {}): AsyncGenerator<Finding> {
  const { sampleEvery = 1, signal = new AbortController().signal, environment = REAL_ENVIRONMENT } = options
  const parts = {
    records: backend.records,
    blobs: backend.blobs,
    state: new CheckState(),
    every: sampleEvery,
    isRunning: options.isRunning === true,
    signal,
    environment,
  }
  await checkStorageFormat(backend.records)
  yield* checkHeads(parts)
  yield* checkMarks(parts)
  yield* checkPacks(parts)
  yield* checkRetiredContents(parts)
  yield* checkTotals(parts)
  yield* checkCounts(parts)
  yield* checkObjectRecords(parts)
  yield* checkPlans(parts)
  yield* checkOtherBlobs(parts)
}

async function* checkHeads({ records, state, signal }: CheckParts): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('head'), { signal })) {
    for (const { key, value } of entries) {
      const [projectId] = keyParts(key)
      try {
        state.heads.set(projectId, decodeHead(key, value))
      } catch (error) {
        yield damageBy(error, projectId, 'project record')
      }
    }
  }
}

/** The store's epoch, the pins of each project, its merges, collections and exports, blobs that are to go, and the totals. */
async function* checkCounts(parts: CheckParts): AsyncGenerator<Finding> {
  const { records, signal } = parts
  for (const [kind, decode, subject] of [
    ['epoch', decodeEpoch, 'epoch record'],
    ['pin', decodePin, 'pin'],
    ['merge', decodeMerge, 'record of a merge'],
    ['collection', decodeCollection, 'record of a collection'],
    ['exportPoint', decodeExportPoint, 'record of an export'],
    ['lease', checkLease, 'record of a lease'],
    ['condemnedBlob', decodeCondemnedBlob, 'mark of a blob'],
  ] as const) {
    for await (const entries of records.range(keyBounds(kind), { signal })) {
      for (const { key, value } of entries) {
        try {
          decode(key, value)
        } catch (error) {
          yield damageBy(error, kind === 'epoch' || kind === 'lease' ? undefined : keyParts(key)[0], subject)
        }
      }
    }
  }
}

async function* checkTotals({ records, state, isRunning, signal }: CheckParts): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('totals'), { signal })) {
    for (const { key, value } of entries) {
      const [projectId, generationHex] = keyParts(key)
      try {
        const generation = parseHex(generationHex)
        const lost = [...state.lostPacks(projectId, generation, decodeTotals(key, value).storedBytes)]
        if (lost.length > 0 && isRunning) yield* lostPacksAtOnce({ records }, { projectId, generation }, signal)
        else yield* lost
      } catch (error) {
        yield damageBy(error, projectId, 'totals of the project')
      }
    }
  }
}

/** Records that say everything by being there: of packs that are not applied yet, and of removed projects. */
async function* checkMarks({ records, state, signal }: CheckParts): AsyncGenerator<Finding> {
  for (const kind of ['pending', 'garbage'] as const) {
    for await (const entries of records.range(keyBounds(kind), { signal })) {
      for (const { key, value } of entries) {
        const [projectId, generationHex, sequenceHex] = keyParts(key)
        try {
          decodeMark(key, value)
          if (kind === 'pending') state.addPending(projectId, parseHex(generationHex), parseHex(sequenceHex))
        } catch (error) {
          yield damageBy(
            error,
            projectId,
            kind === 'pending' ? `mark of pack ${parseHex(sequenceHex)}` : 'mark of a removed project',
          )
        }
      }
    }
  }
}

async function* checkPacks(parts: CheckParts): AsyncGenerator<Finding> {
  const { records, state, signal } = parts
  for await (const entries of records.range(keyBounds('pack'), { signal })) {
    for (const { key, value } of entries) {
      const [projectId, generationHex, sequenceHex] = keyParts(key)
      const [generation, sequence] = [parseHex(generationHex), parseHex(sequenceHex)]
      try {
        state.addPack(projectId, generation, sequence, undefined)
        const record = decodePackRecord(key, value)
        state.named.add(packBlobName(projectId, record.packId))
        // Data that waits to be swept may be half gone.
        if (state.isRemoved(projectId, generation)) continue
        state.addPack(projectId, generation, sequence, record)
        yield* state.packFaults(projectId, generation, sequence, record)
        yield* checkPack(parts, await packOf(records, { projectId, generation, sequence, record }), generation)
      } catch (error) {
        yield damageBy(error, projectId, `pack ${sequence}`)
      }
    }
  }
}

/** What lies beside the records of retired packs was read with these packs. It goes when they go. */
async function* checkRetiredContents({ records, state, signal }: CheckParts): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('retiredContent'), { signal })) {
    for (const { key } of entries) {
      const [projectId, generationHex, sequenceHex] = keyParts(key)
      const [generation, sequence] = [parseHex(generationHex), parseHex(sequenceHex)]
      if (state.isRemoved(projectId, generation) || state.hasPack(projectId, generation, sequence)) continue
      yield damage(projectId, `content of pack ${sequence}`, 'the record of its pack is missing')
    }
  }
}

async function* checkPack(
  { records, blobs, every, state, signal, environment }: CheckParts,
  pack: Pack,
  generation: number,
): AsyncGenerator<Finding> {
  const tables = await readWholeTables(blobs, pack, environment)
  yield* checkBlocks(blobs, pack, tables, { every, environment }, signal)
  if (pack.record.state === 'committed')
    yield note(
      pack.projectId,
      `pack ${pack.record.packId}`,
      'it is committed but not applied yet; opening the store applies it',
    )
  const { sequence, layout } = state.heads.get(pack.projectId) ?? { sequence: 0, layout: 0 }
  if (isActive(pack.record, layout))
    yield* checkOwnership(records, pack, { projectId: pack.projectId, generation, sequence, layout }, tables, signal)
}

/** Every object that a pack owns must be found under its id, and at this place. */
async function* checkOwnership(
  records: RecordStore,
  pack: Pack,
  project: ProjectView,
  tables: PackTables,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const { owned, packId } = pack.record
  for (let first = 0; first < tables.objects; first += LOOKUP_KEYS) {
    const ordinals = Array.from({ length: Math.min(LOOKUP_KEYS, tables.objects - first) }, (_, i) => first + i).filter(
      (ordinal) => owned?.has(ordinal),
    )
    const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
    const locations = await locate(records, project, ids, signal)
    for (const [i, location] of locations.entries()) {
      if (location?.sequence === pack.sequence && location.ordinal === ordinals[i]) continue
      const id = JSON.stringify(Buffer.from(ids[i]).toString('utf8').slice(0, 64))
      yield damage(
        pack.projectId,
        `pack ${packId}`,
        location === undefined ? `object ${id} has no record` : `the record of object ${id} points elsewhere`,
      )
    }
  }
}

async function* checkObjectRecords({ records, state, signal }: CheckParts): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('object'), { signal })) {
    for (const { key, value } of entries) {
      const { projectId, generation, id } = objectKeyParts(key)
      const subject = `object ${JSON.stringify(id.slice(0, 64))}`
      if (state.isRemoved(projectId, generation)) continue
      try {
        yield* state.locationFaults(projectId, generation, decodeObjectRecord(key, value), subject)
      } catch (error) {
        yield damageBy(error, projectId, subject)
      }
    }
  }
}

async function* checkPlans({ records, blobs, state, signal, environment }: CheckParts): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('plan'), { signal })) {
    for (const entry of entries) {
      const [projectId, generationHex] = keyParts(entry.key)
      if (!state.isRemoved(projectId, parseHex(generationHex)))
        yield* checkPlan(blobs, entry, { named: state.named, environment })
    }
  }
}

async function* checkOtherBlobs({ blobs, state, signal }: CheckParts): AsyncGenerator<Finding> {
  for await (const batch of blobs.list('', { signal })) {
    for (const { name, sizeBytes } of batch) {
      if (state.named.has(name) || isOfExtension(name) || name.startsWith(CLUSTER_FOLDER)) continue
      if (!isTombstone(name)) {
        yield note(
          undefined,
          `blob ${name}`,
          `no record names its ${sizeBytes} bytes: an upload that was not acknowledged, or a plan that was replaced`,
        )
        continue
      }
      try {
        yield* state.tombstoneFaults(await readTombstone(blobs, name, sizeBytes), name)
      } catch (error) {
        yield await unreadableTombstone(error, blobs, { name, sizeBytes })
      }
    }
  }
}
