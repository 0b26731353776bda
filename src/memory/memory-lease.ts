import type { StowageError } from '../errors.ts'
import type { BufferPool } from './buffer-pool.ts'

/** Whose requests share one part of the memory: those of one principal in one project. */
export interface Party {
  readonly principal: string
  readonly projectId: string
  /** Whether this is work of the server's own that it tries again later: requests come first. */
  readonly isUpkeep?: boolean | undefined
}

/** The code of the refusal if a request could never be granted its needs. */
export type TooLargeCode = 'memory_limit_exceeded' | 'id_list_too_large' | 'request_too_large'

/** A lease's request to its budget. */
export interface LeaseRequest {
  readonly neededBytes: number
  readonly signal: AbortSignal
  readonly waitMs: number
  readonly code: TooLargeCode
}

interface Lender {
  readonly bufferPool: BufferPool
  tryReserve(lease: MemoryLease, neededBytes: number): boolean
  reserve(lease: MemoryLease, asked: LeaseRequest): Promise<void> | undefined
  giveBack(lease: MemoryLease, neededBytes: number): void
  split(lease: MemoryLease, neededBytes: number, bytes: number): MemoryLease
  close(lease: MemoryLease): void
}

interface Terms {
  readonly signal: AbortSignal
  readonly waitMs: number
  readonly party?: Party
  readonly isSpare?: boolean
  readonly revoke?: (reason: StowageError) => void
  readonly connection?: object | undefined
}

/** A part of a lease that changes separately. */
export class MemoryPart {
  readonly #lease: Pick<MemoryLease, 'hold' | 'free'>
  readonly #code: TooLargeCode | undefined
  #heldBytes = 0

  constructor(lease: Pick<MemoryLease, 'hold' | 'free'>, code?: TooLargeCode) {
    this.#lease = lease
    this.#code = code
  }

  /** Sets the size of the part: call it before the memory is held, or after it was freed. Like `MemoryLease.hold`. */
  set(bytes: number): Promise<void> | undefined {
    const moreBytes = bytes - this.#heldBytes
    this.#heldBytes = bytes
    if (moreBytes > 0) return this.#lease.hold(moreBytes, this.#code)
    if (moreBytes < 0) this.#lease.free(-moreBytes)
    return undefined
  }
}

const NOBODY: Party = { principal: '', projectId: '' }

/**
 * The memory that one request makes the server hold. It is asked for before it is held, and grows with the arrived
 * bytes.
 */
export class MemoryLease {
  readonly #lender: Lender
  readonly #terms: Terms
  #party: Party
  #neededBytes = 0
  #growing: Promise<void> | undefined
  #isOver = false
  #isRevoked = false
  /** The bytes that the budget counts for it: its needs, in steps. Changed by the budget alone. */
  reservedBytes = 0

  constructor(lender: Lender, terms: Terms) {
    this.#lender = lender
    this.#terms = terms
    this.#party = terms.party ?? NOBODY
  }

  get party(): Party {
    return this.#party
  }

  get heldBytes(): number {
    return this.#neededBytes
  }

  /** Memory that is used again, for what the lease holds. */
  get bufferPool(): BufferPool {
    return this.#lender.bufferPool
  }

  /** The connection that the request came on, if it is known: the same object for all requests on it. */
  get connection(): object | undefined {
    return this.#terms.connection
  }

  /** Whether the request was asked to end. */
  get isRevoked(): boolean {
    return this.#isRevoked
  }

  /** Says whose request it is; without effect once something is held. */
  belongsTo(party: Party): void {
    if (this.reservedBytes === 0) this.#party = party
  }

  /**
   * Call it before so many more bytes are held; `undefined` if they were granted at once. Rejects with `code` for more
   * than the whole budget, with `overloaded` if the wait was too long or could never end, and with the signal's reason.
   */
  hold(bytes: number, code: TooLargeCode = 'memory_limit_exceeded'): Promise<void> | undefined {
    this.#neededBytes += bytes
    if (this.#neededBytes <= this.reservedBytes || this.#isOver) return undefined
    const growing = this.#growing === undefined ? this.#grow(code) : this.#growing.then(() => this.#grow(code))
    return growing?.catch((error: unknown) => {
      this.#neededBytes -= bytes
      throw error
    })
  }

  /**
   * Holds so many more bytes if they are free at once, and returns whether they were: for memory that a request can do
   * without.
   */
  tryHold(bytes: number): boolean {
    const neededBytes = this.#neededBytes + bytes
    if (this.#isOver || this.#growing !== undefined) return false
    if (neededBytes > this.reservedBytes && !this.#lender.tryReserve(this, neededBytes)) return false
    this.#neededBytes = neededBytes
    return true
  }

  /** Gives back some of the held bytes. */
  free(bytes: number): void {
    if (this.#isOver) return
    this.#neededBytes -= bytes
    this.#lender.giveBack(this, this.#neededBytes)
  }

  /**
   * Moves held bytes to a lease of the same party that lives longer than the request. It cannot be told to end, and its
   * receiver releases it.
   */
  split(bytes: number): MemoryLease {
    this.#neededBytes -= bytes
    return this.#lender.split(this, this.#neededBytes, bytes)
  }

  /** A part of the lease, for callers that know its current size rather than each change. */
  part(code?: TooLargeCode): MemoryPart {
    return new MemoryPart(this, code)
  }

  /** Whether its holder can go on without it. */
  get isSpare(): boolean {
    return this.#terms.isSpare === true
  }

  /** Whether it can be told to give everything back before it is over. */
  get isRevocable(): boolean {
    return this.#terms.revoke !== undefined
  }

  /** Tells the request to end. */
  revoke(reason: StowageError): void {
    this.#isRevoked = true
    this.#terms.revoke?.(reason)
  }

  /** Gives everything back. May be called more than once. */
  release(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#lender.close(this)
  }

  #grow(code: TooLargeCode): Promise<void> | undefined {
    if (this.#neededBytes <= this.reservedBytes || this.#isOver) return undefined
    const { signal, waitMs } = this.#terms
    const growing = this.#lender.reserve(this, { neededBytes: this.#neededBytes, signal, waitMs, code })
    this.#growing = growing
    return growing?.finally(() => (this.#growing = undefined))
  }
}
