import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../../src/data-folder/durable-files.ts'
import type { Semaphore } from '../../src/async/semaphore.ts'

/** Folders that are remembered as durable; beyond that they are looked at again. */
const KNOWN_FOLDERS_MAX = 10_000

/** Makes folders and the names in them durable, with one sync of each folder for all that wait for it. */
export class FolderSyncs {
  readonly #semaphore: Semaphore
  readonly #sync: (path: string) => Promise<void>
  readonly #waiting = new Map<string, Promise<void>>()
  readonly #known = new Set<string>()

  constructor(semaphore: Semaphore, sync: (path: string) => Promise<void> = syncFolder) {
    this.#semaphore = semaphore
    this.#sync = sync
  }

  /** A sync that has not begun yet covers this call too. */
  sync(path: string): Promise<void> {
    const waiting = this.#waiting.get(path)
    if (waiting) return waiting
    const syncing = this.#syncWhenFree(path)
    this.#waiting.set(path, syncing)
    return syncing
  }

  /** Makes the folder `path` below the existing `root` durable, with all folders between them and their names. */
  async make(path: string, root: string): Promise<void> {
    if (this.#known.has(path)) return
    await mkdir(path, { recursive: true })
    // Another process may have made them without syncing them yet, so this ignores the result of mkdir.
    for (let made = path; made.length > root.length; made = dirname(made)) await this.sync(dirname(made))
    if (this.#known.size >= KNOWN_FOLDERS_MAX) this.#known.clear()
    this.#known.add(path)
  }

  async #syncWhenFree(path: string): Promise<void> {
    // A free semaphore may run its task at once, and a caller must be on the list before it is taken off it.
    await Promise.resolve()
    await this.#semaphore.run(undefined, () => {
      this.#waiting.delete(path)
      return this.#sync(path)
    })
  }
}
