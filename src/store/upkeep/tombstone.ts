import { crc32 } from 'node:zlib'
import { StowageError } from '../../errors.ts'
import type { BlobInfo, BlobStore } from '../../storage/backend.ts'
import { isStorageError } from '../../storage/storage-errors.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { parseHex, tombstoneBlobName } from '../records/keys.ts'
import { readSource } from '../pack/read-source.ts'
import { damageBy, type Finding } from './finding.ts'

/** Says that everything a project held up to and with a generation is gone on purpose. */
export interface Tombstone {
  readonly projectId: string
  readonly generation: number
  readonly removedAtMs: number
}

const ATTEMPTS_MAX = 5
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

/**
 * What to say of a tombstone that cannot be read. One that a crash cut short is not damage: its name says which
 * generation is gone, and it is written anew when the project is swept.
 */
export async function unreadableTombstone(
  error: unknown,
  blobs: BlobStore,
  { name, sizeBytes }: Pick<BlobInfo, 'name' | 'sizeBytes'>,
): Promise<Finding> {
  const finding = damageBy(error, undefined, `blob ${name}`)
  return (await isCutShort(blobs, name, sizeBytes)) ? { ...finding, severity: 'note' } : finding
}

/** Whether it is the beginning of a tombstone: no bit of a whole one can flip so that it looks like that. */
async function isCutShort(blobs: BlobStore, name: string, size: number): Promise<boolean> {
  const [json, ...rest] = (await readText(blobs, name, size)).split('\n')
  if (rest.length === 0) return !json.includes('\0')
  return rest.length === 1 && isJson(json) && crc32(json).toString(16).startsWith(rest[0])
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

async function readText(blobs: BlobStore, name: string, size: number): Promise<string> {
  return Buffer.from(await readSource(blobs, { blob: name }, 0, size)).toString('utf8')
}

/** Throws `corrupt_data`. */
export async function readTombstone(blobs: BlobStore, name: string, size: number): Promise<Tombstone> {
  const [json, checksum] = (await readText(blobs, name, size)).split('\n')
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
