import type { BlobStore, RecordStore, StorageBackend } from '../storage/backend.ts'
import { classifiedBackend } from '../storage/classified.ts'
import { readWholeTables } from './check-pack.ts'
import { Committer } from './committer.ts'
import { damage, messageOf, note, type Finding } from './finding.ts'
import { headKey, keyBounds, keyParts, packKey, parseHex } from './keys.ts'
import { packOf } from './pack-catalog.ts'
import { decodeHeader, decodeTrailer, HEADER_BYTES_MAX, TRAILER_BYTES } from './pack-format.ts'
import { decodeHead, decodePackRecord, encodeHead, encodePackRecord, type PackRecord } from './records.ts'
import { readSource } from './segment-reader.ts'
import { isTombstone, readTombstone } from './tombstone.ts'

const PACK_FILE = /^[0-9a-f]{64}\/[0-9a-f]{32}$/
const REMOVALS_AT_ONCE = 25

/** A pack that was found, in the storage or inside a record. */
interface FoundPack {
  readonly generation: number
  /** Its number, where a record still tells it. */
  readonly sequence: number | undefined
  readonly timeMs: number
  readonly record: PackRecord
}

/** Projects by id, each with its packs by pack id. */
type FoundPacks = Map<string, Map<string, FoundPack>>

/**
 * Writes the records anew from the packs, and yields what it found on the way. For a storage whose records are damaged or lost: of several texts for
 * one id the earlier pack's wins, packs whose records survive before those that are only found as blobs, and what a tombstone names stays removed.
 * Repeatable. The backend must be open, and nobody else may use it meanwhile.
 */
export async function* reindexStore(rawBackend: StorageBackend): AsyncGenerator<Finding> {
  const { records, blobs } = classifiedBackend(rawBackend)
  const removed = new Map<string, number>()
  const found: FoundPacks = new Map()
  yield* findInRecords(records, blobs, found)
  yield* findInBlobs(blobs, found, removed)
  yield* dropDerived(records)
  for (const [projectId, packs] of found) yield* rebuildProject(records, blobs, projectId, [...packs.values()], removed.get(projectId) ?? 0)
}

async function* findInRecords(records: RecordStore, blobs: BlobStore, found: FoundPacks): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('pack'))) {
    for (const { key, value } of entries) {
      const [projectId, generationHex, sequenceHex] = keyParts(key)
      try {
        const record = decodePackRecord(key, value)
        const { source } = packOf(projectId, 0, record)
        const { timeMs } = decodeHeader(await readSource(blobs, source, 0, Math.min(HEADER_BYTES_MAX, record.packBytes)))
        remember(found, projectId, { generation: parseHex(generationHex), sequence: parseHex(sequenceHex), timeMs, record })
      } catch (error) {
        yield damage(projectId, `pack ${parseHex(sequenceHex)}`, `its record cannot be used: ${messageOf(error)}`)
        await records.commit({ remove: [key] })
      }
    }
  }
}

async function* findInBlobs(blobs: BlobStore, found: FoundPacks, removed: Map<string, number>): AsyncGenerator<Finding> {
  for await (const batch of blobs.list('')) {
    for (const { name, size } of batch) {
      try {
        if (isTombstone(name)) {
          const { projectId, generation } = await readTombstone(blobs, name, size)
          removed.set(projectId, Math.max(generation, removed.get(projectId) ?? 0))
        } else if (PACK_FILE.test(name)) {
          yield* findPackBlob(blobs, name, size, found)
        }
      } catch (error) {
        yield damage(undefined, `blob ${name}`, messageOf(error))
      }
    }
  }
}

async function* findPackBlob(blobs: BlobStore, name: string, size: number, found: FoundPacks): AsyncGenerator<Finding> {
  const source = { blob: name }
  const { projectId, packId, generation, timeMs } = decodeHeader(await readSource(blobs, source, 0, Math.min(HEADER_BYTES_MAX, size)))
  if (found.get(projectId)?.has(packId)) return
  const trailer = decodeTrailer(await readSource(blobs, source, Math.max(0, size - TRAILER_BYTES), size))
  const record: PackRecord = {
    state: 'committed',
    packId,
    objects: trailer.objects,
    packBytes: size,
    tablesStart: trailer.sectionsStart,
    condemnedAtMs: 0,
    owned: undefined,
    inline: undefined,
  }
  remember(found, projectId, { generation, sequence: undefined, timeMs, record })
  yield note(projectId, `pack ${packId}`, `no record names its ${trailer.objects} objects: its record was lost, or it was never acknowledged`)
}

function remember(found: FoundPacks, projectId: string, pack: FoundPack): void {
  const packs = found.get(projectId) ?? new Map<string, FoundPack>()
  packs.set(pack.record.packId, pack)
  found.set(projectId, packs)
}

/** Records that are made anew from the packs: where objects lie, plans, and what is under way. */
async function* dropDerived(records: RecordStore): AsyncGenerator<Finding> {
  for (const kind of ['object', 'plan', 'pending'] as const) {
    for await (const entries of records.range(keyBounds(kind))) {
      for (let i = 0; i < entries.length; i += REMOVALS_AT_ONCE) {
        await records.commit({ remove: entries.slice(i, i + REMOVALS_AT_ONCE).map(({ key }) => key) })
      }
    }
  }
  for await (const entries of records.range(keyBounds('head'))) {
    for (const { key, value } of entries) {
      try {
        decodeHead(key, value)
      } catch (error) {
        yield damage(keyParts(key)[0], 'project record', messageOf(error))
        await records.commit({ remove: [key] })
      }
    }
  }
}

async function* rebuildProject(records: RecordStore, blobs: BlobStore, projectId: string, packs: FoundPack[], removedGeneration: number): AsyncGenerator<Finding> {
  const key = headKey(projectId)
  const [value] = await records.getMany([key])
  const head = value === undefined ? undefined : decodeHead(key, value)
  if (head?.removed && head.generation >= removedGeneration) removedGeneration = head.generation
  const generation = Math.max(...packs.map((pack) => pack.generation))
  if (generation <= removedGeneration) {
    yield note(projectId, 'project', 'it was removed; its packs stay removed')
    return
  }
  const live = inOrder(packs.filter((pack) => pack.generation === generation))
  let next = Math.max(head?.generation === generation ? head.sequence : 1, ...live.map(({ sequence }) => (sequence ?? 0) + 1))
  const numbered = live.map((pack) => ({ ...pack, sequence: pack.sequence ?? next++ }))
  await records.commit({ put: [{ key, value: encodeHead(key, { generation, sequence: next, removed: false }) }] })
  const committer = new Committer(records)
  let objects = 0
  for (const { sequence, record } of numbered) {
    try {
      objects += await reapply(records, blobs, committer, { projectId, generation, sequence, record: { ...record, state: 'committed', owned: undefined } })
    } catch (error) {
      yield damage(projectId, `pack ${record.packId}`, `it cannot be used: ${messageOf(error)}`)
    }
  }
  yield note(projectId, 'project', `${objects} objects in ${numbered.length} packs`)
}

/** Packs whose records survive, by their number; then the others, by the time that they carry. */
function inOrder(packs: FoundPack[]): FoundPack[] {
  return packs.sort((a, b) => bySequence(a, b) || a.timeMs - b.timeMs || (a.record.packId < b.record.packId ? -1 : 1))
}

async function reapply(records: RecordStore, blobs: BlobStore, committer: Committer, pack: Parameters<Committer['apply']>[0]): Promise<number> {
  const tables = await readWholeTables(blobs, packOf(pack.projectId, pack.sequence, pack.record))
  const key = packKey(pack.projectId, pack.generation, pack.sequence)
  await records.commit({ put: [{ key, value: encodePackRecord(key, pack.record) }] })
  const applied = await committer.apply(pack, tables)
  return applied.record.owned?.count ?? 0
}

function bySequence(a: FoundPack, b: FoundPack): number {
  if (a.sequence === undefined || b.sequence === undefined) return Number(a.sequence === undefined) - Number(b.sequence === undefined)
  return a.sequence - b.sequence
}
