import { opendir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { KeyedMutex } from '../../src/async/keyed-mutex.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { ensurePrivateFolder } from '../../src/data-folder/exclusive-file.ts'
import { folderHolder, removeLockFile, writeLockFile } from '../../src/data-folder/folder-lock.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { bytesOnDisk, readPart, readPiece, sizeInFile, writePiece, PIECE_BYTES } from './piece-file.ts'
import { type CachedBlob, type Piece, Pieces } from './pieces.ts'

const FILE_NAME = /^([0-9a-f]{40})-(\d{1,10})$/
/** Fetched bytes that wait to be written; what comes beyond is not kept. */
const WAITING_BYTES_MAX = 16 * 1_048_576
/** After an error of the disk nothing is written for so long. */
const REST_MS = 60_000
/** The checksum of a piece is compared when it is first read, and again after this long. */
const VERIFY_INTERVAL_MS = 10 * 60_000

export interface CacheFolderOptions {
  readonly path: string
  readonly sizeBytesMax: number
  /** Distinguishes stores. */
  readonly place: string
  readonly onError: (error: unknown) => void
}

/** Pieces of blobs as files. Errors of the disk are reported and mean that a piece is not there. */
export class CacheFolder {
  readonly pieces: Pieces
  /** For what is fetched and written, used again and again. */
  readonly memory: BufferPool = new BufferPool(WAITING_BYTES_MAX)
  readonly #options: CacheFolderOptions
  readonly #writing = new KeyedMutex()
  readonly #waiting = new Set<Promise<void>>()
  #waitingBytes = 0
  /** Of pieces that are being written. */
  #reservedBytes = 0
  #restsUntilMs = -Infinity
  #isClosed = false

  private constructor(options: CacheFolderOptions) {
    this.#options = options
    this.pieces = new Pieces(options.place)
  }

  /** Finds what an earlier process left. Throws if a living process holds the folder, and the errors of the system. */
  static async open(options: CacheFolderOptions): Promise<CacheFolder> {
    const { path } = options
    await ensurePrivateFolder(path)
    const holder = await folderHolder(path)
    if (holder !== undefined) throw new Error(`the cache ${path} is in use by process ${holder.pid}: give each its own`)
    await writeLockFile(path)
    const folder = new CacheFolder(options)
    await folder.#find()
    await folder.#evict()
    return folder
  }

  /** Fills `target` from byte `start` of the piece. Returns whether it could. */
  async read(piece: Piece, start: number, target: Uint8Array): Promise<boolean> {
    if (REAL_ENVIRONMENT.monotonicMs() - piece.verifiedAtMs > VERIFY_INTERVAL_MS) {
      const all = await this.readAll(piece)
      if (all === undefined) return false
      target.set(all.subarray(start, start + target.length))
      return true
    }
    const isRead = await this.#trying(piece, () => readPart(this.#pathOf(piece), start, target))
    if (isRead === true) this.pieces.touch(piece)
    else await this.#discard(piece)
    return isRead === true
  }

  /** All bytes of the piece, compared with their checksum. */
  async readAll(piece: Piece): Promise<Uint8Array | undefined> {
    const bytes = await this.#trying(piece, () => readPiece(this.#pathOf(piece)))
    if (bytes === undefined || bytes.length < piece.sizeBytes) {
      await this.#discard(piece)
      return undefined
    }
    piece.verifiedAtMs = REAL_ENVIRONMENT.monotonicMs()
    this.pieces.touch(piece)
    return bytes
  }

  /** Copies a piece, or its beginning, and writes it later, if there is room among what waits. */
  keep(blob: CachedBlob, number: number, parts: readonly Uint8Array[]): void {
    const isResting = REAL_ENVIRONMENT.monotonicMs() < this.#restsUntilMs
    const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0)
    if (this.#isClosed || isResting || this.#waitingBytes + sizeBytes > WAITING_BYTES_MAX) return
    this.#waitingBytes += sizeBytes
    blob.users++
    const bytes = this.copyOf(parts)
    blob.unwritten.set(number, bytes)
    const writing = this.#writing
      .run(`${blob.hash}-${number}`, () => this.#write(blob, number, bytes))
      .catch((error: unknown) => this.#failed(error))
      .finally(() => {
        this.#waitingBytes -= sizeBytes
        if (blob.unwritten.get(number) === bytes) blob.unwritten.delete(number)
        this.memory.giveBack(bytes)
        this.pieces.leave(blob)
        this.#waiting.delete(writing)
      })
    this.#waiting.add(writing)
  }

  /** One after the other, in memory of the folder. */
  copyOf(parts: readonly Uint8Array[]): Uint8Array {
    const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0)
    const bytes = this.memory.take(sizeBytes) ?? new Uint8Array(sizeBytes)
    let filled = 0
    for (const part of parts) {
      bytes.set(part, filled)
      filled += part.length
    }
    return bytes
  }

  /** Nothing of the blob is found any more, also after a restart. */
  async remove(name: string): Promise<void> {
    for (const piece of this.pieces.remove(name)) await this.#unlink(piece)
  }

  /** Waits for what is to be written; what is kept later is not. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#waiting)
    await removeLockFile(this.#options.path).catch((error: unknown) => this.#options.onError(error))
  }

  async #write(blob: CachedBlob, number: number, bytes: Uint8Array): Promise<void> {
    if (blob.isRemoved || (blob.pieces.get(number)?.sizeBytes ?? 0) >= bytes.length) return
    const neededBytes = bytesOnDisk(bytes.length)
    this.#reservedBytes += neededBytes
    try {
      await this.#evict()
      const path = this.#pathOf({ blob, number })
      await writePiece(path, bytes, () => !blob.isRemoved)
      if (blob.isRemoved) await rm(path, { force: true })
      else this.pieces.add(blob, number, bytes.length, REAL_ENVIRONMENT.monotonicMs())
    } finally {
      this.#reservedBytes -= neededBytes
    }
  }

  async #evict(): Promise<void> {
    while (this.pieces.sizeBytes + this.#reservedBytes > this.#options.sizeBytesMax) {
      const { oldest } = this.pieces
      if (oldest === undefined) return
      await this.#discard(oldest)
    }
  }

  async #discard(piece: Piece): Promise<void> {
    this.pieces.drop(piece)
    await this.#unlink(piece)
  }

  async #unlink(piece: Pick<Piece, 'blob' | 'number'>): Promise<void> {
    await rm(this.#pathOf(piece), { force: true }).catch((error: unknown) => this.#failed(error))
  }

  /** A file that is gone was evicted since. */
  async #trying<T>(piece: Piece, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT'
      if (!isGone || piece.blob.pieces.get(piece.number) === piece) this.#options.onError(error)
      return undefined
    }
  }

  #failed(error: unknown): void {
    this.#restsUntilMs = REAL_ENVIRONMENT.monotonicMs() + REST_MS
    this.#options.onError(error)
  }

  #pathOf({ blob, number }: Pick<Piece, 'blob' | 'number'>): string {
    return join(this.#options.path, blob.hash.slice(0, 2), `${blob.hash}-${number}`)
  }

  async #find(): Promise<void> {
    const found: { hash: string; number: number; sizeBytes: number; modifiedAtMs: number }[] = []
    for await (const folder of await opendir(this.#options.path)) {
      if (!folder.isDirectory()) continue
      const parent = join(this.#options.path, folder.name)
      for await (const { name } of await opendir(parent)) {
        const { size, mtimeMs } = await stat(join(parent, name))
        const [, hash, number] = FILE_NAME.exec(name) ?? []
        const sizeBytes = sizeInFile(size)
        if (hash === undefined || sizeBytes <= 0 || sizeBytes > PIECE_BYTES)
          await rm(join(parent, name), { force: true })
        else found.push({ hash, number: Number(number), sizeBytes, modifiedAtMs: mtimeMs })
      }
    }
    // What was written last is taken for what was used last.
    for (const { hash, number, sizeBytes } of found.toSorted((a, b) => a.modifiedAtMs - b.modifiedAtMs))
      this.pieces.add(this.pieces.blobOf(hash), number, sizeBytes, -Infinity)
  }
}
