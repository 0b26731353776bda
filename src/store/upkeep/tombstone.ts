import { crc32 } from 'node:zlib'
import { StowageError } from '../../errors.ts'
import type { BlobInfo, BlobStore } from '../../storage/backend.ts'
import { isStorageError } from '../../storage/storage-errors.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { parseHex, tombstoneBlobName } from '../records/keys.ts'
import { readSource } from '../pack/segment-reader.ts'

/** Says that everything a project held up to and with a generation is gone on purpose. */
export interface Tombstone {
  readonly projectId: string
  readonly generation: number
  readonly removedAtMs: number
}

const ATTEMPTS_MAX = 5
const LINE_FEED = 0x0a
const TOMBSTONE_FILE = /^[0-9a-f]{64}\/tombstone-[0-9a-f]{8}$/

export function isTombstone(blobName: string): boolean {
  return TOMBSTONE_FILE.test(blobName)
}

export function generationOfTombstone(blobName: string): number {
  return parseHex(blobName.split('/tombstone-')[1])
}

/**
 * Without it, `reindex` could take the packs of a removed project for ones whose records were lost. One that exists
 * stays as it is, unless a crash cut it short.
 */
export async function putTombstone(blobs: BlobStore, tombstone: Tombstone): Promise<void> {
  const name = tombstoneBlobName(tombstone.projectId, tombstone.generation)
  for (let attemptsLeft = ATTEMPTS_MAX; !(await hasWhole(blobs, name)); attemptsLeft--) {
    try {
      await blobs.put(name, encoded(tombstone))
      return
    } catch (error) {
      // The removal and the sweep of a project may both be here.
      if (!isStorageError(error, 'BlobExistsError') || attemptsLeft === 1) throw error
    }
  }
}

/** Whether the tombstone is there. Removes one that a crash cut short. */
async function hasWhole(blobs: BlobStore, name: string): Promise<boolean> {
  for await (const found of blobs.list(name)) {
    const known = found.find((blob) => blob.name === name)
    if (known === undefined) continue
    if (await isWhole(blobs, known)) return true
    await blobs.remove([name])
  }
  return false
}

async function isWhole(blobs: BlobStore, { name, sizeBytes }: BlobInfo): Promise<boolean> {
  try {
    await readTombstone(blobs, name, sizeBytes)
    return true
  } catch (error) {
    if (error instanceof StowageError && error.code === 'corrupt_data') return false
    throw error
  }
}

/** Whether a crash cut the tombstone short: it has two lines. */
export async function isCutShort(blobs: BlobStore, name: string, size: number): Promise<boolean> {
  const bytes = await readSource(blobs, { blob: name }, 0, size)
  return bytes.filter((byte) => byte === LINE_FEED).length < 2
}

/** Throws `corrupt_data`. */
export async function readTombstone(blobs: BlobStore, name: string, size: number): Promise<Tombstone> {
  const [json, checksum] = Buffer.from(await readSource(blobs, { blob: name }, 0, size))
    .toString('utf8')
    .split('\n')
  if (checksum !== crc32(json).toString(16)) throw corrupt('a tombstone does not match its CRC-32')
  const tombstone = JSON.parse(json) as Tombstone
  const isOwn = tombstoneBlobName(tombstone.projectId, tombstone.generation) === name
  if (!isOwn) throw corrupt('a tombstone names another project')
  return tombstone
}

async function* encoded(tombstone: Tombstone): AsyncGenerator<Uint8Array> {
  const json = JSON.stringify(tombstone)
  yield Buffer.from(`${json}\n${crc32(json).toString(16)}\n`)
}
