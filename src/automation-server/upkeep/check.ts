import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { BLOB_READ_BYTES_MAX, type StorageBackend } from '../../storage/backend.ts'
import { damage, damageBy, type Finding, note } from '../../store/upkeep/finding.ts'
import { decodeRecord } from '../records/codec.ts'
import { allBounds, BLOB_ROOT, blobFolder, boundsOf, globalKey, partsOf } from '../records/keys.ts'
import { blobsOfProject, generationOfBlob, type NamedBlob } from './named-blobs.ts'

interface Head {
  readonly generation: number
  readonly removed: boolean
}

/**
 * Reads everything that automation keeps in a storage and yields the faults; nothing is changed. The backend must be
 * open, and no server may write to it meanwhile. Throws if the storage cannot be read.
 */
export async function* checkAutomation(
  backend: StorageBackend,
  options: { readonly signal?: AbortSignal } = {},
): AsyncGenerator<Finding> {
  const { signal = new AbortController().signal } = options
  const damagedProjects = new Set<string>()
  for await (const finding of checkRecords(backend, signal)) {
    damagedProjects.add(finding.projectId ?? '')
    yield finding
  }
  const named = new Set<string>()
  const heads = new Map<string, Head>()
  for await (const [projectId, head] of readHeads(backend, signal)) {
    heads.set(blobFolder(projectId), head)
    // If a record is damaged, its blob names are unknown; the damage itself has been reported.
    if (head.removed || damagedProjects.has(projectId)) continue
    for await (const blob of blobsOfProject(backend, { projectId, generation: head.generation }, signal)) {
      named.add(blob.name)
      yield* checkBlob(backend, projectId, blob, signal)
    }
  }
  if (damagedProjects.size === 0) yield* checkOtherBlobs(backend, named, heads, signal)
}

async function* checkRecords({ records }: StorageBackend, signal: AbortSignal): AsyncGenerator<Finding> {
  for await (const entries of records.range(allBounds(), { signal })) {
    for (const { key, value } of entries) {
      const [first, second, third, fourth] = partsOf(key)
      try {
        decodeRecord(key, value)
      } catch (error) {
        yield damageBy(
          error,
          first === '' ? third : first,
          first === '' ? `${second} record of automation` : `${third} record ${fourth ?? ''}`.trim(),
        )
      }
    }
  }
}

async function* readHeads({ records }: StorageBackend, signal: AbortSignal): AsyncGenerator<readonly [string, Head]> {
  for await (const entries of records.range(boundsOf(globalKey('head')), { signal })) {
    for (const { key, value } of entries) {
      try {
        yield [partsOf(key)[2], decodeRecord<Head>(key, value)]
      } catch {
        // It was reported among the records.
        continue
      }
    }
  }
}

async function* checkBlob(
  { blobs }: StorageBackend,
  projectId: string,
  { name, bytes, digest, subject }: NamedBlob,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const sha256 = createHash('sha256')
  let checksum = 0
  try {
    for (let at = 0; at < bytes; at += BLOB_READ_BYTES_MAX) {
      const piece = await blobs.read(name, at, Math.min(bytes, at + BLOB_READ_BYTES_MAX), { signal })
      if ('sha256' in digest) sha256.update(piece)
      else checksum = crc32(piece, checksum)
    }
    const isSame = 'sha256' in digest ? sha256.digest('hex') === digest.sha256 : checksum === digest.crc32
    if (!isSame) yield damage(projectId, subject, 'its content does not match its checksum')
  } catch (error) {
    yield damageBy(error, projectId, subject)
  }
}

async function* checkOtherBlobs(
  { blobs }: StorageBackend,
  named: ReadonlySet<string>,
  heads: ReadonlyMap<string, Head>,
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  for await (const batch of blobs.list(BLOB_ROOT, { signal })) {
    for (const { name, sizeBytes } of batch) {
      if (named.has(name)) continue
      const head = heads.get(name.slice(0, name.lastIndexOf('/') + 1))
      const isOfRemoved = head !== undefined && (generationOfBlob(name) < head.generation || head.removed)
      yield note(
        undefined,
        `blob ${name}`,
        isOfRemoved
          ? `its project was removed; its ${sizeBytes} bytes are freed when the store is opened`
          : `no record names its ${sizeBytes} bytes: an upload that was not acknowledged`,
      )
    }
  }
}
