import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'

/** A piece begins at a multiple of this in its blob, and has at most as many bytes. */
export const PIECE_BYTES = 1_048_576
/** A mark, the number of bytes, and their CRC-32. */
const HEADER_BYTES = 12
const MARK = 0x53_43_50_31
const DISK_BLOCK_BYTES = 4_096

/** The number of the piece that has byte `at` of the blob. */
export function pieceNumber(at: number): number {
  return Math.floor(at / PIECE_BYTES)
}

/** The first byte of the piece that has byte `at`. */
export function pieceStart(at: number): number {
  return at - (at % PIECE_BYTES)
}

/** The byte behind the piece that has byte `at`. */
export function pieceEnd(at: number): number {
  return pieceStart(at) + PIECE_BYTES
}

/** What a file with so many bytes of a blob takes on the disk, about. */
export function bytesOnDisk(sizeBytes: number): number {
  return Math.ceil((sizeBytes + HEADER_BYTES) / DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES
}

/** The bytes of the blob in a file of this size; negative if it cannot be a piece. */
export function sizeInFile(fileBytes: number): number {
  return fileBytes - HEADER_BYTES
}

/**
 * Appears under its name at once, but is not synced: a crash may leave anything, which the checksum tells. `isWanted`
 * is asked when everything is written.
 */
export async function writePiece(path: string, bytes: Uint8Array, isWanted: () => boolean): Promise<void> {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt32LE(MARK, 0)
  header.writeUInt32LE(bytes.length, 4)
  header.writeUInt32LE(crc32(bytes), 8)
  const temporary = `${path}.tmp`
  try {
    const file = await openNew(temporary)
    try {
      for (const part of [header, bytes]) await writeAll(file, part)
    } finally {
      await file.close()
    }
    if (isWanted()) await rename(temporary, path)
    else await rm(temporary, { force: true })
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    throw error
  }
}

/** All bytes of the piece; `undefined` if the file is torn or damaged. Throws the errors of the system. */
export async function readPiece(path: string): Promise<Uint8Array | undefined> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    if (size < HEADER_BYTES || size > HEADER_BYTES + PIECE_BYTES) return undefined
    const bytes = Buffer.allocUnsafeSlow(size)
    if ((await readAll(file, bytes, 0)) !== size) return undefined
    const payload = bytes.subarray(HEADER_BYTES)
    const isWhole = bytes.readUInt32LE(0) === MARK && bytes.readUInt32LE(4) === payload.length
    return isWhole && bytes.readUInt32LE(8) === crc32(payload) ? payload : undefined
  } finally {
    await file.close()
  }
}

/** Fills `target` with the bytes of a piece from `start`, unchecked. Returns whether there were as many. */
export async function readPart(path: string, start: number, target: Uint8Array): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    return (await readAll(file, target, HEADER_BYTES + start)) === target.length
  } finally {
    await file.close()
  }
}

/** The folder is made when it is not there. */
async function openNew(path: string): Promise<File> {
  try {
    return await open(path, 'w', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await mkdir(dirname(path), { recursive: true })
    return await open(path, 'w', 0o600)
  }
}

type File = Awaited<ReturnType<typeof open>>

async function writeAll(file: File, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length;) from += (await file.write(bytes, from)).bytesWritten
}

async function readAll(file: File, target: Uint8Array, position: number): Promise<number> {
  let filled = 0
  while (filled < target.length) {
    const { bytesRead } = await file.read(target, filled, target.length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return filled
}
