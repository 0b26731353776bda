import { statfs } from 'node:fs/promises'
import { StoragePoisonedError } from '../../src/storage/storage-errors.ts'

/** How long a reading of the free space stays valid. */
const SPACE_LOOK_MS = 100

/**
 * Free space that is reserved for LevelDB's background writes, so that a full disk stops uploads before it stops the
 * database.
 */
export const DISK_RESERVE_BYTES: number = 16 * 1_048_576

/**
 * Whether a storage may still be written: not after a failure that leaves the disk in an unknown state, and not into
 * the last free space.
 */
export class WriteGuard {
  readonly #path: string
  readonly #reserveBytes: number
  #poison: StoragePoisonedError | undefined
  #space: { readonly lookedAtMs: number; readonly freeBytes: Promise<number> } | undefined

  constructor(path: string, reserveBytes: number = DISK_RESERVE_BYTES) {
    this.#path = path
    this.#reserveBytes = reserveBytes
  }

  poison(cause: unknown): void {
    this.#poison ??= new StoragePoisonedError(cause)
  }

  check(): void {
    if (this.#poison) throw this.#poison
  }

  /** Records may use half of the reserve: they are small, and removing needs them. */
  async checkForRecords(): Promise<void> {
    await this.#checkSpace(this.#reserveBytes / 2)
  }

  async checkForBlob(): Promise<void> {
    await this.#checkSpace(this.#reserveBytes)
  }

  async #checkSpace(neededBytes: number): Promise<void> {
    this.check()
    const nowMs = performance.now()
    if (!this.#space || nowMs - this.#space.lookedAtMs > SPACE_LOOK_MS)
      this.#space = { lookedAtMs: nowMs, freeBytes: freeBytes(this.#path) }
    const free = await this.#space.freeBytes
    if (free >= neededBytes) return
    throw Object.assign(new Error(`${free} bytes are free; ${neededBytes} must stay free for the database`), {
      code: 'ENOSPC',
    })
  }
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}
