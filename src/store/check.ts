import { crc32 } from 'node:zlib'
import type { BlobStore, Entry, RecordStore, StorageBackend } from '../storage/backend.ts'
import { classifiedBackend } from '../storage/classified.ts'
import { checkBlocks, readWholeTables } from './check-pack.ts'
import { damage, messageOf, note, type Finding } from './finding.ts'
import { headKey, keyBounds, keyParts, packBlobName, packKey, parseHex, planBlobName } from './keys.ts'
import { locate, LOOKUP_KEYS } from './locator.ts'
import { packOf, type Pack } from './pack-catalog.ts'
import { tableEntry, type PackTables } from './pack-format.ts'
import { decodePlanTables, encodePlanHeader, PATCH_SOURCE } from './plan-format.ts'
import { decodeHead, decodeObjectRecord, decodePackRecord, decodePlanRecord, type ProjectHead } from './records.ts'
import { readSource } from './segment-reader.ts'
import { isTombstone, readTombstone } from './tombstone.ts'

export interface CheckOptions {
  /** Reads one in so many blocks; tables and records are always read whole. Default 1: every block. */
  readonly sampleEvery?: number
  readonly signal?: AbortSignal
}

/** Packs that are known by their number, to hold object records against. */
type KnownPacks = Map<string, { readonly objects: number }>

/**
 * Reads a whole storage and yields what is wrong with it; nothing is changed. The backend must be open, and no server may write to it meanwhile.
 * Without findings of severity `damage`, every object that was acknowledged is there and whole.
 */
export async function* checkStore(rawBackend: StorageBackend, options: CheckOptions = {}): AsyncGenerator<Finding> {
  const { records, blobs } = classifiedBackend(rawBackend)
  const signal = options.signal ?? new AbortController().signal
  const named = new Set<string>()
  const known: KnownPacks = new Map()
  const heads = yield* checkHeads(records)
  for await (const entries of records.range(keyBounds('pack'), { signal })) {
    for (const entry of entries) yield* checkPackRecord(records, blobs, entry, { heads, named, known, every: options.sampleEvery ?? 1, signal })
  }
  yield* checkObjectRecords(records, known, signal)
  for await (const entries of records.range(keyBounds('plan'), { signal })) {
    for (const entry of entries) yield* checkPlan(blobs, entry, named)
  }
  yield* checkUnnamedBlobs(blobs, named, signal)
}

async function* checkHeads(records: RecordStore): AsyncGenerator<Finding, Map<string, ProjectHead>> {
  const heads = new Map<string, ProjectHead>()
  for await (const entries of records.range(keyBounds('head'))) {
    for (const { key, value } of entries) {
      const [projectId] = keyParts(key)
      try {
        heads.set(projectId, decodeHead(key, value))
      } catch (error) {
        yield damage(projectId, 'project record', messageOf(error))
      }
    }
  }
  return heads
}

interface PackContext {
  readonly heads: ReadonlyMap<string, ProjectHead>
  readonly named: Set<string>
  readonly known: KnownPacks
  readonly every: number
  readonly signal: AbortSignal
}

async function* checkPackRecord(records: RecordStore, blobs: BlobStore, { key, value }: Entry, context: PackContext): AsyncGenerator<Finding> {
  const [projectId, generationHex, sequenceHex] = keyParts(key)
  const generation = parseHex(generationHex)
  const sequence = parseHex(sequenceHex)
  const head = context.heads.get(projectId)
  try {
    const record = decodePackRecord(key, value)
    const pack = packOf(projectId, sequence, record)
    context.known.set(knownName(projectId, generation, sequence), { objects: record.objects })
    context.named.add(packBlobName(projectId, record.packId))
    if (head === undefined) yield damage(projectId, headSubject(projectId), `pack ${record.packId} belongs to a project that has no record`)
    else if (head.generation === generation && sequence >= head.sequence) yield damage(projectId, headSubject(projectId), 'the project record is older than its packs')
    const tables = await readWholeTables(blobs, pack)
    yield* checkBlocks(blobs, pack, tables, { every: context.every }, context.signal)
    if (head?.generation === generation && !head.removed) yield* checkOwnership(records, pack, generation, tables, context.signal)
  } catch (error) {
    yield damage(projectId, `pack ${sequence}`, messageOf(error))
  }
}

function headSubject(projectId: string): string {
  return `record ${Buffer.from(headKey(projectId)).toString('utf8').split('\0').join(' ').trim()}`
}

/** Every object that a pack owns must be found under its id, and at this place. */
async function* checkOwnership(records: RecordStore, pack: Pack, generation: number, tables: PackTables, signal: AbortSignal): AsyncGenerator<Finding> {
  const { owned, packId } = pack.record
  const subject = `pack ${packId}`
  if (owned === undefined) {
    yield note(pack.projectId, subject, 'it is committed but not applied yet; opening the store applies it')
    return
  }
  for (let first = 0; first < tables.objects; first += LOOKUP_KEYS) {
    const ordinals = Array.from({ length: Math.min(LOOKUP_KEYS, tables.objects - first) }, (_, i) => first + i).filter((ordinal) => owned.has(ordinal))
    const ids = ordinals.map((ordinal) => tableEntry(tables.ids, ordinal))
    const locations = await locate(records, { projectId: pack.projectId, generation }, ids, signal)
    for (const [i, location] of locations.entries()) {
      if (location?.sequence === pack.sequence && location.ordinal === ordinals[i]) continue
      const id = JSON.stringify(Buffer.from(ids[i]).toString('utf8').slice(0, 64))
      yield damage(pack.projectId, subject, location === undefined ? `object ${id} has no record` : `the record of object ${id} points elsewhere`)
    }
  }
}

async function* checkObjectRecords(records: RecordStore, known: KnownPacks, signal: AbortSignal): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('object'), { signal })) {
    for (const { key, value } of entries) {
      const [projectId, generationHex, id] = keyParts(key)
      const subject = `object ${JSON.stringify((id ?? '').slice(0, 64))}`
      try {
        const location = decodeObjectRecord(key, value)
        const pack = known.get(knownName(projectId, parseHex(generationHex), location.sequence))
        if (pack === undefined) yield damage(projectId, subject, `its record names pack ${location.sequence}, which has no record`)
        else if (location.ordinal >= pack.objects) yield damage(projectId, subject, 'its record names a place beyond the end of its pack')
      } catch (error) {
        yield damage(projectId, subject, messageOf(error))
      }
    }
  }
}

async function* checkPlan(blobs: BlobStore, { key, value }: Entry, named: Set<string>): AsyncGenerator<Finding> {
  const [projectId, , rootId] = keyParts(key)
  const subject = `plan of ${JSON.stringify(rootId.slice(0, 64))}`
  try {
    const { planId, tablesStart, planBytes } = decodePlanRecord(key, value)
    const source = { blob: planBlobName(projectId, planId) }
    named.add(source.blob)
    const header = encodePlanHeader(planId, projectId)
    const stored = await readSource(blobs, source, 0, header.length)
    if (Buffer.compare(stored, header) !== 0) throw new Error('its header is damaged')
    const { rows } = decodePlanTables(await readSource(blobs, source, tablesStart, planBytes))
    for (let row = 0; row < rows.sources.length; row++) {
      if (rows.sources[row] !== PATCH_SOURCE) continue
      const patch = await readSource(blobs, source, rows.starts[row], rows.starts[row] + rows.storedBytes[row])
      if (crc32(patch) !== rows.storedCrc32[row]) throw new Error(`row ${row} of its patch does not match its CRC-32`)
    }
  } catch (error) {
    yield damage(projectId, subject, `${messageOf(error)}; no object is lost by it: reindex drops the plan, and it is made again`)
  }
}

async function* checkUnnamedBlobs(blobs: BlobStore, named: ReadonlySet<string>, signal: AbortSignal): AsyncGenerator<Finding> {
  for await (const batch of blobs.list('', { signal })) {
    for (const { name, size } of batch) {
      if (named.has(name)) continue
      if (!isTombstone(name)) yield note(undefined, `blob ${name}`, `no record names its ${size} bytes: an upload that was not acknowledged, or a plan that was replaced`)
      else yield* checkTombstone(blobs, name, size)
    }
  }
}

async function* checkTombstone(blobs: BlobStore, name: string, size: number): AsyncGenerator<Finding> {
  try {
    await readTombstone(blobs, name, size)
  } catch (error) {
    yield damage(undefined, `blob ${name}`, messageOf(error))
  }
}

function knownName(projectId: string, generation: number, sequence: number): string {
  return Buffer.from(packKey(projectId, generation, sequence)).toString('utf8')
}
