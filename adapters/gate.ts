import { StorageClosedError } from '../src/storage/backend.ts'

/** Lets calls pass until it is closed; closing waits for those that passed. */
export class Gate {
  #inside = 0
  #closed = false
  #emptied: (() => void) | undefined
  #closing: Promise<void> | undefined

  get closed(): boolean {
    return this.#closed
  }

  /** Throws `StorageClosedError` once the gate is closed, the signal's reason once it has aborted. */
  check(signal?: AbortSignal): void {
    if (this.#closed) throw new StorageClosedError()
    signal?.throwIfAborted()
  }

  async pass<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    this.check(signal)
    this.#inside++
    try {
      return await call()
    } finally {
      this.#inside--
      if (this.#inside === 0) this.#emptied?.()
    }
  }

  /** `release` runs once, when nobody is inside any more. */
  close(release: () => Promise<void>): Promise<void> {
    this.#closing ??= this.#close(release)
    return this.#closing
  }

  async #close(release: () => Promise<void>): Promise<void> {
    this.#closed = true
    if (this.#inside > 0) await new Promise<void>((resolve) => (this.#emptied = resolve))
    await release()
  }
}
