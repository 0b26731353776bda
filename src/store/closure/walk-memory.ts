import type { MemoryBudget, MemoryLease, Party } from '../../memory/memory-budget.ts'
import type { MemoryPart } from '../../memory/memory-lease.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import type { IndexMemory } from './index-pieces.ts'

/** Of the whole budget an index takes at most this share: with less a walk is slower, and ends all the same. */
const INDEX_SHARE = 2 / 3
/** Ids that wait to be looked up take at most this share: a version of a large model can name all of an older one. */
const UNRESOLVED_SHARE = 1 / 6

interface WalkTerms {
  readonly signal: AbortSignal
  readonly party: Party
  /** Ends the walk. */
  readonly revoke: (reason: Error) => void
}

/**
 * The memory of a walk. Its tables wait for memory like everything else. Its index takes free memory, and gives
 * everything back when others need it: ids that it would have found are then looked up instead.
 */
export class WalkMemory implements IndexMemory {
  /** Called when the index must let go of everything. */
  dropIndex: () => void = () => undefined
  /** With more ids than these bytes hold, the walk looks them up before it goes on. */
  readonly unresolvedBytesMax: number
  readonly bufferPool: BufferPool
  readonly #tablesLease: MemoryLease
  readonly #tables: MemoryPart
  readonly #index: MemoryLease
  readonly #indexBytesMax: number

  constructor(budget: MemoryBudget, { signal, party, revoke }: WalkTerms) {
    this.bufferPool = budget.bufferPool
    this.#tablesLease = budget.open({ signal, party, revoke })
    this.#tables = this.#tablesLease.part()
    this.#index = budget.open({ signal, party, isSpare: true, revoke: () => this.#releaseIndex() })
    this.unresolvedBytesMax = Math.floor(budget.limitBytes * UNRESOLVED_SHARE)
    this.#indexBytesMax = Math.floor(budget.limitBytes * INDEX_SHARE)
  }

  /** Sets the bytes that the tables hold from now on. They never wait for the memory of the walk's own index. */
  setTables(bytes: number): Promise<void> | undefined {
    const waiting = this.#tables.set(bytes)
    if (waiting !== undefined) this.#releaseIndex()
    return waiting
  }

  tryHold(bytes: number): boolean {
    return this.#index.heldBytes + bytes <= this.#indexBytesMax && this.#index.tryHold(bytes)
  }

  free(bytes: number): void {
    this.#index.free(bytes)
  }

  /** The walk is over: its index lets go of everything. */
  release(): void {
    this.#releaseIndex()
    this.#tablesLease.release()
  }

  #releaseIndex(): void {
    this.dropIndex()
    this.#index.release()
  }
}
