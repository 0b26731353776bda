import type { BlobInfo, BlobStore, RecordStore, StorageBackend } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { damageBy, note, type Finding } from './finding.ts'
import { keyBounds, keyParts, packBlobName, parseHex, projectFolder } from '../records/keys.ts'
import { packOf } from '../records/pack-catalog.ts'
import { decodeRetiredContent } from '../records/retired-content.ts'
import type { ByteSource } from '../pack/segment.ts'
import { decodeHeader, decodeTrailer, HEADER_BYTES_MAX, TRAILER_BYTES } from '../pack/pack-format.ts'
import { decodePackRecord, newPackRecord, type PackRecord } from '../records/pack-record.ts'
import { readSource } from '../pack/read-source.ts'
import { generationOfTombstone, isTombstone, readTombstone, unreadableTombstone } from './tombstone.ts'

const PACK_FILE = /^[0-9a-f]{64}\/[0-9a-f]{32}$/

/** A pack that was found, in a record or as a blob that none names. */
export interface FoundPack {
  readonly generation: number
  /** Its number, if a record still names it. */
  readonly sequence: number | undefined
  /** The time of its writing, if no record names its number. */
  readonly timeMs: number
  readonly record: PackRecord
}

/** The packs in a storage, regardless of its records. */
export class FoundPacks {
  /** Projects by id, each with its packs by pack id. */
  readonly projects: Map<string, Map<string, FoundPack>> = new Map()
  /** Projects that some tombstone names. */
  readonly buried: Set<string> = new Set()
  /** The highest removed generation, by folder: the name of a tombstone contains it, even if its content is damaged. */
  readonly #generations = new Map<string, number>()
  readonly #blobNames = new Set<string>()

  /** Whether a pack was found in this blob. */
  hasBlob(name: string): boolean {
    return this.#blobNames.has(name)
  }

  packsOf(projectId: string): FoundPack[] {
    return [...(this.projects.get(projectId)?.values() ?? [])]
  }

  buriedGeneration(projectId: string): number {
    return this.#generations.get(projectFolder(projectId)) ?? 0
  }

  add(projectId: string, pack: FoundPack): void {
    const packs = this.projects.get(projectId) ?? new Map<string, FoundPack>()
    packs.set(pack.record.packId, pack)
    this.projects.set(projectId, packs)
    this.#blobNames.add(packBlobName(projectId, pack.record.packId))
  }

  bury(blobName: string): void {
    const folder = blobName.split('/')[0]
    this.#generations.set(folder, Math.max(generationOfTombstone(blobName), this.#generations.get(folder) ?? 0))
  }
}

/**
 * Packs whose records can be read, then packs that are only blobs or lie beside no record, and tombstones. Records that
 * cannot be read are removed.
 */
export async function* findPacks(records: RecordStore, blobs: BlobStore, found: FoundPacks): AsyncGenerator<Finding> {
  const numbers = new Set<string>()
  for await (const entries of records.range(keyBounds('pack'))) {
    for (const { key, value } of entries) {
      const [projectId, generationHex, sequenceHex] = keyParts(key)
      const [generation, sequence] = [parseHex(generationHex), parseHex(sequenceHex)]
      try {
        const record = decodePackRecord(key, value)
        const { source } = await packOf(records, { projectId, generation, sequence, record })
        const content = 'bytes' in source ? source.bytes : 'blob'
        found.add(projectId, { generation, sequence, timeMs: 0, record: { ...record, content } })
        numbers.add(keyParts(key).join('\0'))
      } catch (error) {
        yield damageBy(error, projectId, `pack ${sequence}`, (message) => `its record cannot be used: ${message}`)
        await records.commit({ remove: [key] })
      }
    }
  }
  yield* findRetiredContents({ records, blobs }, found, numbers)
  for await (const batch of blobs.list('')) {
    for (const blob of batch) {
      const { name, sizeBytes } = blob
      try {
        if (isTombstone(name)) yield* findTombstone(blobs, blob, found)
        else if (PACK_FILE.test(name)) yield* findPackBlob(blobs, name, sizeBytes, found)
      } catch (error) {
        yield damageBy(error, undefined, `blob ${name}`)
      }
    }
  }
}

/** Contents of retired packs whose records were lost: their numbers are not among those that were found. */
async function* findRetiredContents(
  { records, blobs }: Pick<StorageBackend, 'records' | 'blobs'>,
  found: FoundPacks,
  numbers: ReadonlySet<string>,
): AsyncGenerator<Finding> {
  for await (const entries of records.range(keyBounds('retiredContent'))) {
    for (const { key, value } of entries) {
      if (numbers.has(keyParts(key).join('\0'))) continue
      const [projectId, generationHex, sequenceHex] = keyParts(key)
      const sequence = parseHex(sequenceHex)
      try {
        const bytes = decodeRetiredContent(key, value)
        const pack = await packWithoutRecord(blobs, { bytes }, bytes.length)
        const { generation, timeMs } = pack
        if (pack.projectId !== projectId || generation !== parseHex(generationHex))
          throw corrupt('it contains a pack of another project')
        // The layout from which it is retired does not matter any more, only that it is.
        const record = { ...pack.record, content: bytes, retiredAt: 1 }
        found.add(projectId, { generation, sequence, timeMs, record })
        yield unnamed(projectId, record)
      } catch (error) {
        yield damageBy(error, projectId, `content of pack ${sequence}`, (message) => `it cannot be used: ${message}`)
        await records.commit({ remove: [key] })
      }
    }
  }
}

async function* findTombstone(blobs: BlobStore, blob: BlobInfo, found: FoundPacks): AsyncGenerator<Finding> {
  found.bury(blob.name)
  try {
    found.buried.add((await readTombstone(blobs, blob.name, blob.sizeBytes)).projectId)
  } catch (error) {
    yield await unreadableTombstone(error, blobs, blob)
  }
}

async function* findPackBlob(blobs: BlobStore, name: string, size: number, found: FoundPacks): AsyncGenerator<Finding> {
  if (found.hasBlob(name)) return
  const { projectId, ...pack } = await packWithoutRecord(blobs, { blob: name }, size)
  if (packBlobName(projectId, pack.record.packId) !== name) throw corrupt('it contains a pack other than its name says')
  found.add(projectId, { ...pack, sequence: undefined })
  yield unnamed(projectId, pack.record)
}

/** A pack as its header and its trailer describe it. */
async function packWithoutRecord(
  blobs: BlobStore,
  source: ByteSource,
  size: number,
): Promise<Omit<FoundPack, 'sequence'> & { readonly projectId: string }> {
  const { projectId, packId, generation, timeMs } = decodeHeader(
    await readSource(blobs, source, 0, Math.min(HEADER_BYTES_MAX, size)),
  )
  const trailer = decodeTrailer(await readSource(blobs, source, Math.max(0, size - TRAILER_BYTES), size))
  const record = newPackRecord({
    packId,
    objects: trailer.objects,
    packBytes: size,
    tablesStart: trailer.sectionsStart,
    epoch: 0,
    content: 'blob',
  })
  return { projectId, generation, timeMs, record }
}

function unnamed(projectId: string, { packId, objects }: PackRecord): Finding {
  return note(
    projectId,
    `pack ${packId}`,
    `no record names its ${objects} objects: its record was lost, or it was never acknowledged`,
  )
}
