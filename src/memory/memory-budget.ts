import { REAL_ENVIRONMENT, type Environment, type Timer } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { BufferPool } from './buffer-pool.ts'
import { type LeaseRequest, MemoryLease, type Party } from './memory-lease.ts'
import { FairShares } from './shares.ts'

export type { MemoryLease, Party } from './memory-lease.ts'

export interface LeaseOptions {
  /** A request that waits for memory leaves the queue when this aborts. */
  readonly signal: AbortSignal
  /** How long to wait for memory, each time it grows, before `overloaded` (503). The budget's own by default. */
  readonly waitMs?: number
  /** The party of the request. It may be set later, before anything is held. */
  readonly party?: Party
  /** Whether `revoke` only takes the memory away, and the request goes on without it. */
  readonly isSpare?: boolean
  /** Called with `overloaded` if others need the memory more: the request must end, or go on without the memory. */
  readonly revoke?: (reason: StowageError) => void
  /** The connection that the request came on. */
  readonly connection?: object | undefined
}

export interface MemoryBudgetOptions {
  /** Leases grow in steps of this many bytes, so that small changes need no request. 1 by default. */
  readonly stepBytes?: number
  /** How long to wait for memory before `overloaded` (503). 10,000 by default. */
  readonly waitMs?: number
  /** How long parties that hold more may block those that wait and hold less. 500 by default. */
  readonly patienceMs?: number
  /** The source of time. That of the process by default. */
  readonly environment?: Environment
  /** Where requests find memory that others have given back. By default nothing is kept. */
  readonly bufferPool?: BufferPool
  /** Called when a request would have to wait: it may give memory back. */
  readonly onShortage?: () => void
}

interface Waiter {
  readonly lease: MemoryLease
  readonly bytes: number
  /** Counts the bytes as held. */
  readonly granted: () => void
  readonly refused: (error: unknown) => void
}

const STEP_BYTES = 1
const WAIT_MS = 10_000
const PATIENCE_MS = 500
const RETRY_AFTER_SECONDS = '2'
/** The part of the budget that all may fill; the rest lets one growing request finish. */
const COMMON_SHARE = 0.75

/**
 * One budget for the memory of all requests in flight. If it is exhausted, requests queue, and are refused after a
 * while. Parties that hold less come before those that hold more (see `FairShares`); within one party growing requests come
 * before new ones, oldest first. So that one party cannot keep the memory from others, it gives back its youngest lease
 * when another that holds less has waited for `patienceMs`; before that, upkeep gives back its own, and then whoever
 * holds memory that can be done without. The last quarter is for one request at a time, the oldest of those that need
 * it, until it ends. If all wait to grow even so, the youngest is refused, so that the others can end.
 */
export class MemoryBudget {
  readonly limitBytes: number
  readonly waitMs: number
  readonly bufferPool: BufferPool
  readonly #stepBytes: number
  readonly #patienceMs: number
  readonly #environment: Environment
  readonly #onShortage: () => void
  readonly #shares = new FairShares()
  readonly #leases = new Set<MemoryLease>()
  readonly #waiting = new Set<Waiter>()
  #heldBytes = 0
  /** The part of it that is not a lease. */
  #countedBytes = 0
  /** The lease that may use the last quarter. */
  #finisher: MemoryLease | undefined

  constructor(limitBytes: number, options: MemoryBudgetOptions = {}) {
    if (!Number.isSafeInteger(limitBytes) || limitBytes < 1)
      throw new RangeError(`a memory budget of ${limitBytes} bytes is not a positive integer`)
    this.limitBytes = limitBytes
    this.waitMs = options.waitMs ?? WAIT_MS
    this.bufferPool = options.bufferPool ?? new BufferPool(0)
    this.#stepBytes = options.stepBytes ?? STEP_BYTES
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS
    this.#environment = options.environment ?? REAL_ENVIRONMENT
    this.#onShortage = options.onShortage ?? ((): void => undefined)
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  get freeBytes(): number {
    return Math.max(0, this.limitBytes - this.#heldBytes)
  }

  /** A lease that holds nothing yet. */
  open(options: LeaseOptions): MemoryLease {
    return new MemoryLease(this, { waitMs: this.waitMs, ...options })
  }

  /**
   * Counts memory that cannot wait or be refused, such as the buffers of responses under way. Negative to give it back.
   */
  count(bytes: number): void {
    this.#heldBytes += bytes
    this.#countedBytes += bytes
    if (bytes < 0) this.#serve()
  }

  /** Called by leases. `undefined` when it was granted at once. */
  reserve(lease: MemoryLease, asked: LeaseRequest): Promise<void> | undefined {
    if (asked.neededBytes > this.limitBytes) return Promise.reject(tooLargeForBudget(asked, this.limitBytes))
    if (asked.signal.aborted) return Promise.reject(asked.signal.reason as Error)
    const wanted = Math.min(this.limitBytes, Math.ceil(asked.neededBytes / this.#stepBytes) * this.#stepBytes)
    const bytes = wanted - lease.reservedBytes
    const isFree = (): boolean => !this.#isBehindOthers(lease) && this.#fits(lease, bytes)
    if (!isFree()) this.#onShortage()
    if (!isFree()) return this.#wait(lease, bytes, asked)
    this.#grant(lease, bytes)
    return undefined
  }

  /** Called by leases: grants at once or not at all. */
  tryReserve(lease: MemoryLease, neededBytes: number): boolean {
    const bytes = Math.ceil(neededBytes / this.#stepBytes) * this.#stepBytes - lease.reservedBytes
    if (this.#isBehindOthers(lease) || this.#heldBytes + bytes > this.limitBytes * COMMON_SHARE) return false
    this.#grant(lease, bytes)
    return true
  }

  /** Called by leases: returns what exceeds their needs. */
  giveBack(lease: MemoryLease, neededBytes: number): void {
    const kept = Math.ceil(neededBytes / this.#stepBytes) * this.#stepBytes
    if (kept >= lease.reservedBytes) return
    this.#grant(lease, kept - lease.reservedBytes)
    this.#serve()
  }

  /**
   * Called by leases: what exceeds `neededBytes` goes over to another lease of `bytes`. That one neither grows nor ends
   * on its own, so it takes no part in what is decided about leases.
   */
  split(lease: MemoryLease, neededBytes: number, bytes: number): MemoryLease {
    const other = this.open({ signal: new AbortController().signal, party: lease.party })
    const otherBytes = Math.ceil(bytes / this.#stepBytes) * this.#stepBytes
    this.#heldBytes += otherBytes
    this.#shares.add(other.party, otherBytes)
    other.reservedBytes = otherBytes
    this.giveBack(lease, neededBytes)
    return other
  }

  /** Called by leases when they are over. */
  close(lease: MemoryLease): void {
    for (const waiter of this.#waiting) if (waiter.lease === lease) waiter.refused(overloaded())
    if (this.#finisher === lease) this.#finisher = undefined
    this.#grant(lease, -lease.reservedBytes)
    this.#serve()
  }

  #grant(lease: MemoryLease, bytes: number): void {
    this.#heldBytes += bytes
    if (bytes > 0 && this.#heldBytes > this.limitBytes * COMMON_SHARE) this.#finisher ??= lease
    this.#shares.add(lease.party, bytes)
    lease.reservedBytes += bytes
    if (lease.reservedBytes > 0) this.#leases.add(lease)
    else this.#leases.delete(lease)
  }

  #fits(lease: MemoryLease, bytes: number): boolean {
    return this.#heldBytes + bytes <= (this.#leases.size === 0 ? this.limitBytes : this.#boundFor(lease))
  }

  #boundFor(lease: MemoryLease): number {
    const isFinisher = this.#finisher === lease || (this.#finisher === undefined && lease.reservedBytes > 0)
    return isFinisher ? this.limitBytes : this.limitBytes * COMMON_SHARE
  }

  /**
   * Within one party nobody overtakes a waiting request, except one that already holds memory and finds only newcomers
   * waiting.
   */
  #isBehindOthers(lease: MemoryLease): boolean {
    if (lease === this.#finisher) return false
    for (const { lease: other } of this.#waiting) {
      if (!this.#shares.isSame(other.party, lease.party)) continue
      if (lease.reservedBytes === 0 || other.reservedBytes > 0) return true
    }
    return false
  }

  #wait(lease: MemoryLease, bytes: number, { signal, waitMs }: LeaseRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        timer.cancel()
        looking.cancel()
        signal.removeEventListener('abort', aborted)
        this.#waiting.delete(waiter)
      }
      const granted = (): void => {
        settle()
        this.#grant(lease, bytes)
        resolve()
      }
      const refused = (error: unknown): void => {
        settle()
        reject(error)
        this.#serve()
      }
      const aborted = (): void => refused(signal.reason)
      const waiter: Waiter = { lease, bytes, granted, refused }
      const timer = this.#environment.setTimer(waitMs, () => refused(overloaded()))
      const lookAgain = (): Timer =>
        this.#environment.setTimer(this.#patienceMs, () => {
          looking = lookAgain()
          this.#onShortage()
          if (this.#waiting.has(waiter)) this.#revokeFor(waiter)
        })
      let looking = lookAgain()
      signal.addEventListener('abort', aborted)
      this.#waiting.add(waiter)
      this.#serve()
    })
  }

  #serve(): void {
    for (let next = this.#nextToServe(); next !== undefined; next = this.#nextToServe()) next.granted()
    this.#refuseYoungestIfStuck()
  }

  /**
   * Looks at the first request of each party, those that hold the least first: a request that cannot be served blocks
   * its own party, and nobody else.
   */
  #nextToServe(): Waiter | undefined {
    if (this.#waiting.size === 0) return undefined
    const firsts = new Map<string, Waiter>()
    const growing = this.#growing()
    const ofOldest = [...this.#leases].flatMap((lease) => growing.get(lease) ?? [])
    for (const waiter of [...ofOldest, ...this.#waiting]) {
      const key = this.#shares.keyOf(waiter.lease.party)
      if (!firsts.has(key) || waiter.lease === this.#finisher) firsts.set(key, waiter)
    }
    const inOrder = [...firsts.values()].sort((a, b) => this.#shares.compare(a.lease.party, b.lease.party))
    return inOrder.find(({ lease, bytes }) => this.#fits(lease, bytes))
  }

  #refuseYoungestIfStuck(): void {
    if (this.#waiting.size === 0 || this.#countedBytes > 0) return
    const growing = this.#growing()
    if (growing.size === 0 || growing.size < this.#leases.size) return
    const victim = this.#victimOf([...this.#leases])
    if (victim !== undefined) growing.get(victim)?.refused(overloaded())
  }

  /** The waiting leases that already hold memory. */
  #growing(): Map<MemoryLease, Waiter> {
    const growing = new Map<MemoryLease, Waiter>()
    for (const waiter of this.#waiting) if (waiter.lease.reservedBytes > 0) growing.set(waiter.lease, waiter)
    return growing
  }

  /** Takes memory back for one that waits. */
  #revokeFor({ lease, bytes }: Waiter): void {
    let freeBytes = this.#boundFor(lease) - this.#heldBytes
    for (const one of this.#leases) if (one.isRevoked) freeBytes += one.reservedBytes
    if (freeBytes >= bytes) return
    const candidates = [...this.#leases].filter(
      (one) => one.isRevocable && !one.isRevoked && this.#givesWay(one, lease, bytes),
    )
    this.#victimOf(candidates)?.revoke(overloaded())
  }

  /**
   * Upkeep gives way to every request, and no request to upkeep. Otherwise memory that can be done without goes to
   * anybody, and other memory to a party that would still hold less.
   */
  #givesWay(one: MemoryLease, waiting: MemoryLease, bytes: number): boolean {
    const [isUpkeep, isForUpkeep] = [one, waiting].map(({ party }) => party.isUpkeep === true)
    if (isUpkeep !== isForUpkeep) return isUpkeep
    return one.isSpare || this.#shares.isLargerBy(one.party, waiting.party, bytes)
  }

  /** Of those that cost least to take back, the youngest of the largest party. */
  #victimOf(leases: readonly MemoryLease[]): MemoryLease | undefined {
    const leastCost = Math.min(...leases.map(costOf))
    let victim: MemoryLease | undefined
    for (const lease of leases) {
      if (costOf(lease) > leastCost) continue
      if (victim === undefined || this.#shares.compare(lease.party, victim.party) >= 0) victim = lease
    }
    return victim
  }
}

/** How much is lost when a lease is taken back: time of upkeep (0), its work, time of a request, the request (3). */
function costOf({ party, isSpare }: MemoryLease): number {
  return (party.isUpkeep === true ? 0 : 2) + (isSpare ? 0 : 1)
}

function overloaded(): StowageError {
  return new StowageError('overloaded', 'the server has no memory left for this request; try again shortly', {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
  })
}

function tooLargeForBudget({ code }: LeaseRequest, limitBytes: number): StowageError {
  return new StowageError(
    code,
    `this request needs more than the ${limitBytes} bytes of memory that one request may use`,
  )
}
