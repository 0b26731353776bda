import { close, open } from 'node:fs'
import { promisify } from 'node:util'

/** Plain descriptors: an answer reads from many files, and a `FileHandle` for each costs as much as the reading. */
const openFile = promisify(open)
const closeFile = promisify(close)

interface Entry {
  readonly opening: Promise<number>
  users: number
  /** Closed by its last user: it was dropped while it was in use. */
  dropped: boolean
}

/**
 * Open files of blobs, for reading: opening costs more than reading from a warm page cache. At most `max` stay open
 * without a reader.
 */
export class FileHandles {
  readonly #entries = new Map<string, Entry>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /** Rejects with the system's error when the file cannot be opened. */
  async use<T>(path: string, read: (descriptor: number) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(path) ?? { opening: openFile(path, 'r'), users: 0, dropped: false }
    // The last entry is the one that was used last.
    this.#entries.delete(path)
    this.#entries.set(path, entry)
    entry.users++
    try {
      return await read(await entry.opening)
    } catch (error) {
      if (await failed(entry.opening)) this.#forget(path, entry)
      throw error
    } finally {
      entry.users--
      if (entry.dropped && entry.users === 0) await closeEntry(entry)
      await this.#trim()
    }
  }

  /** After this no read sees the file that `path` named. */
  async drop(path: string): Promise<void> {
    const entry = this.#entries.get(path)
    if (!entry) return
    this.#forget(path, entry)
    if (entry.users === 0) await closeEntry(entry)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((path) => this.drop(path)))
  }

  #forget(path: string, entry: Entry): void {
    entry.dropped = true
    if (this.#entries.get(path) === entry) this.#entries.delete(path)
  }

  async #trim(): Promise<void> {
    for (const [path, entry] of this.#entries) {
      if (this.#entries.size <= this.#max) return
      if (entry.users === 0) await this.drop(path)
    }
  }
}

async function failed(opening: Promise<unknown>): Promise<boolean> {
  return opening.then(
    () => false,
    () => true,
  )
}

async function closeEntry(entry: Entry): Promise<void> {
  if (!(await failed(entry.opening))) await closeFile(await entry.opening)
}
