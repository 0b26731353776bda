import { StowageError } from './errors.ts'

/** Memory that somebody holds. `release` may be called more than once. */
export interface MemoryLease {
  /** Changes what is held. Throws `tables_too_large` for more than the whole budget, `overloaded` when others hold the rest. */
  resize(bytes: number): void
  release(): void
}

export interface AcquireOptions {
  readonly signal: AbortSignal
  /** How long to wait for memory before `overloaded` (503). */
  readonly waitMs: number
}

interface Waiter {
  readonly bytes: number
  readonly grant: (lease: MemoryLease) => void
}

const RETRY_AFTER_SECONDS = '2'

/** One budget for the memory of everything in flight: who comes when it is spent waits in line, and is refused after a while. */
export class MemoryBudget {
  readonly limitBytes: number
  #heldBytes = 0
  readonly #waiters = new Set<Waiter>()

  constructor(limitBytes: number) {
    if (!Number.isSafeInteger(limitBytes) || limitBytes < 1) throw new RangeError(`a memory budget of ${limitBytes} bytes is not a positive integer`)
    this.limitBytes = limitBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  acquire(bytes: number, { signal, waitMs }: AcquireOptions): Promise<MemoryLease> {
    signal.throwIfAborted()
    if (bytes > this.limitBytes) throw tooLargeForBudget(this.limitBytes)
    if (this.#waiters.size === 0 && this.#heldBytes + bytes <= this.limitBytes) return Promise.resolve(this.#grant(bytes))
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', aborted)
        this.#waiters.delete(waiter)
      }
      const waiter: Waiter = {
        bytes,
        grant: (lease) => {
          settle()
          resolve(lease)
        },
      }
      const aborted = (): void => {
        settle()
        reject(signal.reason as Error)
        this.#serveWaiters()
      }
      const timer = setTimeout(() => {
        settle()
        reject(overloaded())
        this.#serveWaiters()
      }, waitMs)
      signal.addEventListener('abort', aborted)
      this.#waiters.add(waiter)
    })
  }

  #grant(bytes: number): MemoryLease {
    let held = bytes
    this.#heldBytes += bytes
    return {
      resize: (wanted) => {
        if (wanted > this.limitBytes) throw tooLargeForBudget(this.limitBytes)
        if (wanted > held && this.#heldBytes + wanted - held > this.limitBytes) throw overloaded()
        this.#heldBytes += wanted - held
        held = wanted
        this.#serveWaiters()
      },
      release: () => {
        this.#heldBytes -= held
        held = 0
        this.#serveWaiters()
      },
    }
  }

  #serveWaiters(): void {
    for (const waiter of this.#waiters) {
      if (this.#heldBytes + waiter.bytes > this.limitBytes) return
      waiter.grant(this.#grant(waiter.bytes))
    }
  }
}

function overloaded(): StowageError {
  return new StowageError('overloaded', 'the server has no memory left for this request; try again shortly', {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
  })
}

function tooLargeForBudget(limitBytes: number): StowageError {
  return new StowageError('tables_too_large', `the ids and references of this upload need more than the ${limitBytes} bytes of memory that one upload may use`)
}
