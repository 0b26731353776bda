import { randomBytes } from 'node:crypto'
import { fstat, read } from 'node:fs'
import { link, open, opendir, rm, stat, unlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { BlobExistsError, BlobNotFoundError } from '../src/storage/backend.ts'
import type { BlobInfo, BlobStore, CallOptions } from '../src/storage/backend.ts'
import { checkBlobName, checkBlobPrefix, checkInsideBlob, checkReadRange } from '../src/storage/checks.ts'
import { abortableContent, closeContent } from '../src/storage/content.ts'
import { isDiskFull, isTooManyFiles } from './errno.ts'
import { listFiles } from './file-listing.ts'
import { FileHandles } from './file-handles.ts'
import type { FolderSyncs } from './folder-syncs.ts'
import { Gate } from './gate.ts'
import type { Health } from './health.ts'
import { inBuffers } from './in-buffers.ts'
import { Slots } from './slots.ts'

/** What one put holds in memory and writes with one call. */
const WRITE_BYTES = 524_288
const HANDLES_MAX = 64

const readFile = promisify(read)
const statFile = promisify(fstat)

/** No name has a dot, so no blob meets a folder of its name. */
export const BLOB_SUFFIX = '.blob'

export interface FilesPart {
  /** Where blobs lie, by their names. */
  readonly root: string
  /** Where they are written; on the same file system. */
  readonly incoming: string
  readonly health: Health
  readonly syncs: Slots
  readonly folders: FolderSyncs
  /** Makes the content of a file durable. */
  readonly syncFile: (file: FileHandle) => Promise<void>
}

/** Blobs as plain files: written under a temporary name, synced, linked to their name, the folder synced. */
export class FileBlobs implements BlobStore {
  readonly readBytesPreferred: number = 1_048_576
  readonly #gate = new Gate()
  readonly #handles = new FileHandles(HANDLES_MAX)
  readonly #reads = new Slots(HANDLES_MAX)
  readonly #open: () => Promise<FilesPart>
  readonly #release: () => Promise<void>

  constructor(openPart: () => Promise<FilesPart>, release: () => Promise<void>) {
    this.#open = openPart
    this.#release = release
  }

  async put(name: string, content: AsyncIterable<Uint8Array>, { signal }: CallOptions = {}): Promise<{ size: number }> {
    let started = false
    try {
      return await this.#gate.pass(signal, async () => {
        checkBlobName(name)
        const part = await this.#open()
        part.health.check()
        if (await isFile(fileOf(part, name))) throw new BlobExistsError(name)
        started = true
        return writeBlob(part, name, abortableContent(content, signal), signal)
      })
    } finally {
      if (!started) await closeContent(content)
    }
  }

  read(name: string, start: number, end: number, { signal }: CallOptions = {}): Promise<Uint8Array> {
    return this.#gate.pass(signal, async () => {
      checkBlobName(name)
      checkReadRange(start, end)
      const path = fileOf(await this.#open(), name)
      return this.#reads.run(async () => {
        signal?.throwIfAborted()
        try {
          return await this.#handles.use(path, (descriptor) => readExactly(name, descriptor, start, end))
        } catch (error) {
          throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? new BlobNotFoundError(name) : error
        }
      })
    })
  }

  remove(names: readonly string[]): Promise<void> {
    return this.#gate.pass(undefined, async () => {
      for (const name of names) checkBlobName(name)
      const part = await this.#open()
      part.health.check()
      const folders = new Set<string>()
      for (const name of names) {
        const path = fileOf(part, name)
        if (await unlinked(path)) folders.add(dirname(path))
        await this.#handles.drop(path)
      }
      await poisoning(part.health, Promise.all([...folders].map((folder) => part.folders.sync(folder))))
    })
  }

  async *list(prefix: string, { signal }: CallOptions = {}): AsyncIterable<readonly BlobInfo[]> {
    this.#gate.check(signal)
    checkBlobPrefix(prefix)
    const { root } = await this.#gate.pass(signal, this.#open)
    for await (const batch of listFiles(root, prefix, BLOB_SUFFIX)) {
      this.#gate.check(signal)
      yield batch
    }
  }

  close(): Promise<void> {
    return this.#gate.close(async () => {
      await this.#handles.close()
      await this.#release()
    })
  }
}

/** Removes what puts that a crash cut short have left. */
export async function removeIncoming(folder: string): Promise<void> {
  for await (const entry of await opendir(folder)) await rm(join(folder, entry.name), { force: true })
}

function fileOf({ root }: FilesPart, name: string): string {
  return `${join(root, ...name.split('/'))}${BLOB_SUFFIX}`
}

async function writeBlob(
  part: FilesPart,
  name: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<{ size: number }> {
  const temporary = join(part.incoming, randomBytes(16).toString('hex'))
  try {
    const size = await writeFile(part, temporary, content)
    signal?.throwIfAborted()
    await publish(part, name, temporary)
    return { size }
  } finally {
    await rm(temporary, { force: true })
  }
}

async function writeFile(part: FilesPart, path: string, content: AsyncIterable<Uint8Array>): Promise<number> {
  let file: FileHandle
  try {
    file = await open(path, 'wx')
  } catch (error) {
    await closeContent(content)
    throw error
  }
  let size = 0
  try {
    for await (const buffer of inBuffers(content, WRITE_BYTES)) {
      await part.health.checkForBlob()
      await writeAll(file, buffer)
      size += buffer.length
    }
    await poisoning(
      part.health,
      part.syncs.run(() => part.syncFile(file)),
    )
    return size
  } finally {
    await file.close()
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let from = 0; from < bytes.length;) from += (await file.write(bytes, from)).bytesWritten
}

/** A link, unlike a rename, never replaces what bears the name already. */
async function publish(part: FilesPart, name: string, temporary: string): Promise<void> {
  const path = fileOf(part, name)
  part.health.check()
  await poisoning(part.health, part.folders.make(dirname(path), part.root))
  try {
    await link(temporary, path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? new BlobExistsError(name) : error
  }
  try {
    await poisoning(part.health, part.folders.sync(dirname(path)))
  } catch (error) {
    await unlinked(path)
    throw error
  }
}

/** After a failed sync nobody knows what is on the disk. A full disk is no such case: what was being written is thrown away. */
async function poisoning<T>(health: Health, syncing: Promise<T>): Promise<T> {
  try {
    return await syncing
  } catch (error) {
    if (!isDiskFull(error) && !isTooManyFiles(error)) health.poison(error)
    throw error
  }
}

async function readExactly(name: string, descriptor: number, start: number, end: number): Promise<Uint8Array> {
  // Where nothing is read, the end of the file shows only by its size.
  if (start === end) checkInsideBlob(name, end, (await statFile(descriptor)).size)
  const bytes = Buffer.allocUnsafeSlow(end - start)
  for (let filled = 0; filled < bytes.length;) {
    const { bytesRead } = await readFile(descriptor, bytes, filled, bytes.length - filled, start + filled)
    if (bytesRead === 0) checkInsideBlob(name, end, start + filled)
    filled += bytesRead
  }
  return bytes
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
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
