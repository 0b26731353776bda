import { closeIterator } from '../async/abort.ts'
import { StorageClosedError, storageError } from './storage-errors.ts'

/**
 * One half of a guarded backend: opened at its first call, closed once, with every call in between counted and its
 * errors classified.
 */
export class GuardedHalf<D> {
  readonly #what: string
  readonly #open: () => Promise<D>
  readonly #release: () => Promise<void>
  readonly #iterators = new Set<AsyncIterator<unknown>>()
  #driver: D | undefined
  #underWay = 0
  #isClosed = false
  #idle: (() => void) | undefined
  #closing: Promise<void> | undefined

  /** Messages of errors call it `what`. */
  constructor(what: string, open: () => Promise<D>, release: () => Promise<void>) {
    this.#what = what
    this.#open = open
    this.#release = release
  }

  /** Throws `StorageClosedError` after `close`, and the signal's reason once it has aborted. */
  check(signal: AbortSignal | undefined): void {
    if (this.#isClosed) throw new StorageClosedError()
    signal?.throwIfAborted()
  }

  /** Opens the storage if no call has done so. */
  async ready(): Promise<void> {
    this.check(undefined)
    await this.call(undefined, async () => undefined)
  }

  /**
   * An opening that fails rejects with the engine's own error, as `ready` does: it is for the operator. What `run`
   * throws is classified.
   */
  async call<T>(signal: AbortSignal | undefined, run: (driver: D) => Promise<T>): Promise<T> {
    this.#underWay++
    let isOpen = false
    try {
      this.#driver ??= await this.#open()
      isOpen = true
      return await run(this.#driver)
    } catch (error) {
      throw isOpen ? storageError(error, signal, this.#what) : error
    } finally {
      this.#underWay--
      if (this.#underWay === 0) this.#idle?.()
    }
  }

  /**
   * The batches that `start` yields, without empty ones. Between two batches the storage may be closed: the driver's
   * iterator is then ended first.
   */
  async *each<T>(
    signal: AbortSignal | undefined,
    start: (driver: D) => AsyncIterable<readonly T[]>,
  ): AsyncGenerator<readonly T[], void, void> {
    const iterator = await this.call(signal, async (driver) => start(driver)[Symbol.asyncIterator]())
    this.#iterators.add(iterator)
    try {
      for (;;) {
        this.check(signal)
        const next = await this.call(signal, () => iterator.next())
        if (next.done === true) return
        if (next.value.length > 0) yield next.value
      }
    } finally {
      this.#iterators.delete(iterator)
      await this.call(signal, async () => iterator.return?.())
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#isClosed = true
    if (this.#underWay > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    await Promise.all([...this.#iterators].map(closeIterator))
    await this.#release()
  }
}
