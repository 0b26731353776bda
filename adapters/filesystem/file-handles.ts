import { close, closeSync, open, openSync } from 'node:fs'
import { promisify } from 'node:util'

/** Plain descriptors: an answer reads from many files, and a `FileHandle` for each costs as much as the reading. */
const openFile = promisify(open)
const closeFile = promisify(close)

interface Entry {
  readonly opening: Promise<number>
  /** Known once it is open. */
  descriptor: number | undefined
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
    const entry = this.#entries.get(path) ?? entryOf(openFile(path, 'r'))
    this.#isUsed(path, entry)
    entry.users++
    try {
      entry.descriptor ??= await entry.opening
      return await read(entry.descriptor)
    } catch (error) {
      if (await failed(entry.opening)) this.#forget(path, entry)
      throw error
    } finally {
      entry.users--
      if (entry.dropped && entry.users === 0) await closeEntry(entry)
      await this.#trim()
    }
  }

  /** The same on the calling thread. Throws the system's error. */
  useNow<T>(path: string, read: (descriptor: number) => T): T {
    const entry = this.#entries.get(path) ?? openedEntry(openSync(path, 'r'))
    this.#isUsed(path, entry)
    if (entry.descriptor === undefined) throw new Error(`${path} is still being opened`)
    entry.users++
    try {
      return read(entry.descriptor)
    } finally {
      entry.users--
      this.#trimNow()
    }
  }

  /** Opens the file, if it is not open, on the calling thread. Throws the system's error. */
  openNow(path: string): void {
    if (!this.#entries.has(path)) this.#entries.set(path, openedEntry(openSync(path, 'r')))
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

  /** The last entry is the one that was used last. */
  #isUsed(path: string, entry: Entry): void {
    this.#entries.delete(path)
    this.#entries.set(path, entry)
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

  #trimNow(): void {
    for (const [path, { users, descriptor }] of this.#entries) {
      if (this.#entries.size <= this.#max) return
      if (users > 0 || descriptor === undefined) continue
      this.#entries.delete(path)
      closeSync(descriptor)
    }
  }
}

function entryOf(opening: Promise<number>): Entry {
  return { opening, descriptor: undefined, users: 0, dropped: false }
}

function openedEntry(descriptor: number): Entry {
  return { ...entryOf(Promise.resolve(descriptor)), descriptor }
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
