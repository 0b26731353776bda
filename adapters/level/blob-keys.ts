import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/*
 * Keys of the blob database, chunks first: their ids ascend with the time, so LevelDB only ever appends files of them.
 *   c <id: 14> <index: uint32 BE>   a chunk of CHUNK_BYTES, the last one shorter
 *   n <name>                        the blob is whole: version, id, size, time, CRC-32
 *   p <id: 14>                      chunks are being written; without a name when the process dies, they are removed at the next opening
 */

export const CHUNK_BYTES = 262_144
const ID_BYTES = 14
const MARK_VERSION = 1
const MARK_BYTES: number = 1 + ID_BYTES + 8 + 8 + 4

/** The facts of a whole blob. */
export interface BlobMark {
  readonly id: Uint8Array
  readonly sizeBytes: number
  readonly modifiedAtMs: number
}

/** Milliseconds since 1970 in 6 bytes, then 8 random ones. */
export function newBlobId(): Uint8Array {
  const id = Buffer.alloc(ID_BYTES)
  id.writeUIntBE(Date.now(), 0, 6)
  randomBytes(8).copy(id, 6)
  return id
}

export function chunkKey(id: Uint8Array, index: number): Uint8Array {
  const suffix = Buffer.alloc(4)
  suffix.writeUInt32BE(index)
  return Buffer.concat([Buffer.from('c'), id, suffix])
}

export function chunkKeys(id: Uint8Array, from: number, to: number): Uint8Array[] {
  return Array.from({ length: Math.max(to - from, 0) }, (_, at) => chunkKey(id, from + at))
}

export function nameKey(name: string): Uint8Array {
  return Buffer.from(`n${name}`, 'latin1')
}

export function nameOfKey(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset + 1, key.length - 1).toString('latin1')
}

export function pendingKey(id: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from('p'), id])
}

export const PENDING_RANGE: { readonly gte: Uint8Array; readonly lt: Uint8Array } = {
  gte: Buffer.from('p'),
  lt: Buffer.from('q'),
}

export function idOfPending(key: Uint8Array): Uint8Array {
  return key.subarray(1)
}

export function encodeMark({ id, sizeBytes, modifiedAtMs }: BlobMark): Uint8Array {
  const bytes = Buffer.alloc(MARK_BYTES)
  bytes[0] = MARK_VERSION
  bytes.set(id, 1)
  bytes.writeBigUInt64BE(BigInt(sizeBytes), 1 + ID_BYTES)
  bytes.writeBigUInt64BE(BigInt(modifiedAtMs), 9 + ID_BYTES)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, MARK_BYTES - 4)), MARK_BYTES - 4)
  return bytes
}

/** Throws `Error` for bytes that `encodeMark` did not make: LevelDB as Node binds it notices no flipped bit itself. */
export function decodeMark(name: string, value: Uint8Array): BlobMark {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length)
  const whole = bytes.length === MARK_BYTES && bytes[0] === MARK_VERSION
  if (!whole || bytes.readUInt32BE(MARK_BYTES - 4) !== crc32(bytes.subarray(0, MARK_BYTES - 4))) {
    throw new Error(`the record of blob ${name} is damaged`)
  }
  return {
    id: bytes.subarray(1, 1 + ID_BYTES),
    sizeBytes: Number(bytes.readBigUInt64BE(1 + ID_BYTES)),
    modifiedAtMs: Number(bytes.readBigUInt64BE(9 + ID_BYTES)),
  }
}
