import { StowageError } from './errors.ts'

/** Memory that somebody holds. */
export interface MemoryLease {
  /**
   * Changes what is held; growing waits for memory like everybody. Rejects with `tables_too_large` for more than the whole budget, with `overloaded`
   * when the wait was too long or could never end, and with the signal's reason.
   */
  resize(bytes: number): Promise<void>
  /** May be called more than once. */
  release(): void
}

export interface AcquireOptions {
  readonly signal: AbortSignal
  /** How long to wait for memory, at the beginning and each time it grows, before `overloaded` (503). */
  readonly waitMs: number
}

interface Waiter {
  readonly bytes: number
  /** Counts the bytes as held. */
  readonly granted: () => void
  readonly refused: (error: unknown) => void
}

const RETRY_AFTER_SECONDS = '2'
/** The part of the budget that newcomers may fill; the rest is for those who are inside and grow. */
const NEWCOMERS_SHARE = 0.75

/**
 * One budget for the memory of everything in flight. Who finds it spent waits in line, and is refused after a while. Those who grow come before those
 * who come, oldest first; when everybody inside waits to grow, the youngest of them is refused, so that the others can end.
 */
export class MemoryBudget {
  readonly limitBytes: number
  #heldBytes = 0
  readonly #leases = new Set<object>()
  readonly #growing = new Map<object, Waiter>()
  readonly #coming = new Set<Waiter>()

  constructor(limitBytes: number) {
    if (!Number.isSafeInteger(limitBytes) || limitBytes < 1)
      throw new RangeError(`a memory budget of ${limitBytes} bytes is not a positive integer`)
    this.limitBytes = limitBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  async acquire(bytes: number, options: AcquireOptions): Promise<MemoryLease> {
    options.signal.throwIfAborted()
    if (bytes > this.limitBytes) throw tooLargeForBudget(this.limitBytes)
    const lease = {}
    const granted = (): void => {
      this.#heldBytes += bytes
      this.#leases.add(lease)
    }
    if (this.#coming.size === 0 && this.#mayCome(bytes)) granted()
    else {
      await this.#wait(options, bytes, granted, (waiter) => {
        this.#coming.add(waiter)
        return () => this.#coming.delete(waiter)
      })
    }
    return this.#leaseOf(lease, bytes, options)
  }

  #mayCome(bytes: number): boolean {
    if (this.#growing.size > 0) return false
    return this.#heldBytes === 0 || this.#heldBytes + bytes <= this.limitBytes * NEWCOMERS_SHARE
  }

  #leaseOf(lease: object, bytes: number, options: AcquireOptions): MemoryLease {
    let held = bytes
    return {
      resize: async (wanted) => {
        if (wanted > this.limitBytes) throw tooLargeForBudget(this.limitBytes)
        if (wanted > held) await this.#grow(lease, wanted - held, options)
        else this.#heldBytes -= held - wanted
        held = wanted
        this.#serve()
      },
      release: () => {
        if (!this.#leases.delete(lease)) return
        this.#heldBytes -= held
        this.#growing.get(lease)?.refused(overloaded())
        this.#serve()
      },
    }
  }

  async #grow(lease: object, bytes: number, options: AcquireOptions): Promise<void> {
    options.signal.throwIfAborted()
    const granted = (): void => {
      this.#heldBytes += bytes
    }
    if (this.#growing.size === 0 && this.#heldBytes + bytes <= this.limitBytes) return granted()
    await this.#wait(options, bytes, granted, (waiter) => {
      this.#growing.set(lease, waiter)
      return () => this.#growing.delete(lease)
    })
  }

  /** `enter` takes a place in a line and says how to leave it. */
  #wait(
    { signal, waitMs }: AcquireOptions,
    bytes: number,
    onGranted: () => void,
    enter: (waiter: Waiter) => () => void,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', aborted)
        leave()
      }
      const granted = (): void => {
        settle()
        onGranted()
        resolve()
      }
      const refused = (error: unknown): void => {
        settle()
        reject(error)
        this.#serve()
      }
      const aborted = (): void => refused(signal.reason)
      const timer = setTimeout(() => refused(overloaded()), waitMs)
      signal.addEventListener('abort', aborted)
      const leave = enter({ bytes, granted, refused })
      this.#serve()
    })
  }

  #serve(): void {
    for (const lease of this.#leases) {
      const waiter = this.#growing.get(lease)
      if (waiter === undefined) continue
      if (this.#heldBytes + waiter.bytes > this.limitBytes) return this.#refuseYoungestIfStuck()
      waiter.granted()
    }
    for (const waiter of this.#coming) {
      if (!this.#mayCome(waiter.bytes)) return
      waiter.granted()
    }
  }

  #refuseYoungestIfStuck(): void {
    if (this.#growing.size < this.#leases.size) return
    const youngest = [...this.#leases].at(-1)
    if (youngest !== undefined) this.#growing.get(youngest)?.refused(overloaded())
  }
}

function overloaded(): StowageError {
  return new StowageError('overloaded', 'the server has no memory left for this request; try again shortly', {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
  })
}

function tooLargeForBudget(limitBytes: number): StowageError {
  return new StowageError(
    'tables_too_large',
    `the ids and references of this upload need more than the ${limitBytes} bytes of memory that one upload may use`,
  )
}
