import { randomBytes } from 'node:crypto'
import { fstat, read, readSync, statSync, type Stats } from 'node:fs'
import { link, open, opendir, rm, stat, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Semaphore } from '../../src/async/semaphore.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import type { BlobInfo, CallOptions, ReadOptions } from '../../src/storage/backend.ts'
import type { BlobDriver } from '../../src/storage/driver.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../../src/storage/storage-errors.ts'
import { isDiskFull, isTooManyFiles } from '../common/errno.ts'
import { listFiles } from './file-listing.ts'
import { FileHandles } from './file-handles.ts'
import type { FolderSyncs } from './folder-syncs.ts'
import { filesKeptOpen } from './open-files.ts'
import { QuickReads } from '../common/quick-reads.ts'
import type { WriteGuard } from '../common/write-guard.ts'
import { rechunk } from '../common/rechunk.ts'

/** The bytes that one put holds in memory and writes with one call. */
const WRITE_BYTES = 524_288
/** Buffers of puts that are kept for the next ones. */
const IDLE_WRITE_BYTES_MAX = 4 * WRITE_BYTES
/** Reads in the thread pool at a time. */
const READS_MAX = 64
/** Longer reads leave the calling thread. */
const QUICK_READ_BYTES_MAX = 262_144
/** How old a file that no put finished must be, where another process may still write it. */
const ABANDONED_MS = 86_400_000

const readFile = promisify(read)
const statFile = promisify(fstat)

/** No name has a dot, so no blob meets a folder of its name. */
export const BLOB_SUFFIX = '.blob'

export interface FilesPart {
  /** The folder of blobs, by their names. */
  readonly root: string
  /** The folder in which they are written; on the same file system. */
  readonly incoming: string
  readonly guard: WriteGuard
  readonly syncs: Semaphore
  readonly folders: FolderSyncs
  /** Makes the content of a file durable. */
  readonly syncFile: (file: FileHandle) => Promise<void>
  /** Other processes put and remove blobs here too. */
  readonly isShared?: boolean
}

/** Blobs as plain files: written under a temporary name, synced, linked to their name, the folder synced. */
export class FileBlobs implements BlobDriver {
  readonly #part: FilesPart
  readonly #handles = new FileHandles(filesKeptOpen())
  readonly #reads = new Semaphore(READS_MAX)
  readonly #quick = new QuickReads()
  readonly #bufferPool = new BufferPool(IDLE_WRITE_BYTES_MAX)

  constructor(part: FilesPart) {
    this.#part = part
  }

  async put(name: string, content: AsyncIterable<Uint8Array>, { signal }: CallOptions): Promise<{ sizeBytes: number }> {
    this.#part.guard.check()
    if ((await this.#infoOf(fileOf(this.#part, name)))?.isFile() === true) throw new BlobExistsError(name)
    const buffer = this.#bufferPool.takeAny(WRITE_BYTES)
    try {
      return await writeBlob(this.#part, name, rechunk(content, buffer), signal)
    } finally {
      this.#bufferPool.giveBack(buffer)
    }
  }

  async read(name: string, start: number, end: number, { signal, into }: ReadOptions): Promise<Uint8Array> {
    const path = fileOf(this.#part, name)
    // A disk that others share may be a network away.
    const bytes = this.#part.isShared === true ? undefined : this.#readNow(path, start, end, into)
    if (bytes !== undefined) return bytes
    return this.#reads.run(signal, async () => {
      try {
        if (this.#part.isShared === true) await this.#dropRemoved(path)
        else this.#quick.tryNow(() => this.#handles.openNow(path))
        return await this.#handles.use(path, (descriptor) =>
          readExactly(name, descriptor, start, into ?? Buffer.allocUnsafeSlow(end - start)),
        )
      } catch (error) {
        throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? new BlobNotFoundError(name) : error
      }
    })
  }

  /** `undefined` if it takes longer, or is not possible: then the thread pool says why. */
  #readNow(path: string, start: number, end: number, into?: Uint8Array): Uint8Array | undefined {
    const sizeBytes = end - start
    if (sizeBytes === 0 || sizeBytes > QUICK_READ_BYTES_MAX) return undefined
    return this.#quick.tryNow(() => {
      const bytes = into ?? Buffer.allocUnsafeSlow(sizeBytes)
      const bytesRead = this.#handles.useNow(path, (descriptor) => readSync(descriptor, bytes, 0, sizeBytes, start))
      return bytesRead === sizeBytes ? bytes : undefined
    })
  }

  async remove(names: readonly string[]): Promise<void> {
    const part = this.#part
    part.guard.check()
    const folders = new Set<string>()
    for (const name of names) {
      const path = fileOf(part, name)
      if (await unlinked(path)) folders.add(dirname(path))
      await this.#handles.drop(path)
    }
    await poisoning(part.guard, Promise.all([...folders].map((folder) => part.folders.sync(folder))))
  }

  list(prefix: string): AsyncIterable<readonly BlobInfo[]> {
    return listFiles(this.#part.root, prefix, BLOB_SUFFIX)
  }

  /** Closes the files that are kept open for reading. */
  close(): Promise<void> {
    return this.#handles.close()
  }

  async #infoOf(path: string): Promise<Stats | undefined> {
    // A disk that others share may be a network away.
    if (this.#part.isShared === true) return infoOf(path)
    const read = this.#quick.tryNow(() => ({ info: statSync(path, { throwIfNoEntry: false }) }))
    return read === undefined ? infoOf(path) : read.info
  }

  /** Another process may have removed the file since it was opened. */
  async #dropRemoved(path: string): Promise<void> {
    const { nlink } = await this.#handles.use(path, (descriptor) => statFile(descriptor))
    if (nlink === 0) await this.#handles.drop(path)
  }
}

/** Removes the leftovers of puts that a crash cut short. */
export async function removeIncoming(folder: string): Promise<void> {
  for await (const entry of await opendir(folder)) await rm(join(folder, entry.name), { force: true })
}

/**
 * Removes what puts left behind a day ago, in a folder in which other processes write. The clock of the disk counts, by
 * a file that is written now. A put that is slower fails, since its file has no name any more.
 */
export async function removeAbandoned(folder: string): Promise<void> {
  const probe = join(folder, randomBytes(16).toString('hex'))
  const file = await open(probe, 'wx')
  const { mtimeMs: nowMs } = await file.stat()
  await file.close()
  await rm(probe)
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name)
    const found = await infoOf(path)
    if (found && nowMs - found.mtimeMs > ABANDONED_MS) await unlinked(path)
  }
}

/** Node takes slashes on every system. */
function fileOf({ root }: FilesPart, name: string): string {
  return `${root}/${name}${BLOB_SUFFIX}`
}

async function writeBlob(
  part: FilesPart,
  name: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<{ sizeBytes: number }> {
  const temporary = join(part.incoming, randomBytes(16).toString('hex'))
  try {
    const size = await writeFile(part, temporary, content)
    signal?.throwIfAborted()
    await publish(part, name, temporary)
    return { sizeBytes: size }
  } finally {
    await unlinked(temporary)
  }
}

async function writeFile(part: FilesPart, path: string, content: AsyncIterable<Uint8Array>): Promise<number> {
  const file = await open(path, 'wx')
  let size = 0
  try {
    for await (const buffer of content) {
      await part.guard.checkForBlob()
      await writeAll(file, buffer)
      size += buffer.length
    }
    await poisoning(
      part.guard,
      part.syncs.run(undefined, () => part.syncFile(file)),
    )
    return size
  } finally {
    await file.close()
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length;) from += (await file.write(bytes, from)).bytesWritten
}

/** Unlike a rename, a link never replaces an existing name. */
async function publish(part: FilesPart, name: string, temporary: string): Promise<void> {
  const path = fileOf(part, name)
  part.guard.check()
  await poisoning(part.guard, part.folders.make(dirname(path), part.root))
  try {
    await link(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // A network file system that lost the answer sends the call again, and meets its own link.
    if (part.isShared !== true || !(await isSameFile(temporary, path))) throw new BlobExistsError(name)
  }
  try {
    await poisoning(part.guard, part.folders.sync(dirname(path)))
  } catch (error) {
    await unlinked(path)
    throw error
  }
}

/**
 * After a failed sync the state of the disk is unknown. A full disk is different: the bytes that were being written are
 * discarded.
 */
async function poisoning<T>(guard: WriteGuard, syncing: Promise<T>): Promise<T> {
  try {
    return await syncing
  } catch (error) {
    if (!isDiskFull(error) && !isTooManyFiles(error)) guard.poison(error)
    throw error
  }
}

/** Fills `bytes` with those of the file from `start` on. */
async function readExactly(name: string, descriptor: number, start: number, bytes: Uint8Array): Promise<Uint8Array> {
  const end = start + bytes.length
  // If nothing is read, the end of the file shows only by its size.
  if (start === end) checkInside(name, end, (await statFile(descriptor)).size)
  for (let filled = 0; filled < bytes.length;) {
    const { bytesRead } = await readFile(descriptor, bytes, filled, bytes.length - filled, start + filled)
    if (bytesRead === 0) checkInside(name, end, start + filled)
    filled += bytesRead
  }
  return bytes
}

function checkInside(name: string, end: number, size: number): void {
  if (end > size) throw new BlobRangeError(name, end, size)
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [first, second] = [await infoOf(one), await infoOf(other)]
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}

async function infoOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function unlinked(path: string): Promise<boolean> {
  try {
    await unlink(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
