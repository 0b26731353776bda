import type { BufferPool } from '../../memory/buffer-pool.ts'
import { ByteCache } from '../../memory/byte-cache.ts'
import type { PackTables } from '../pack/pack-format.ts'
import { type DecodedTables, giveBackTables, tablesBytes } from '../pack/stored-tables.ts'

export interface BorrowedTables {
  readonly tables: PackTables
  /** To be called once. */
  readonly giveBack: () => void
}

interface Cached extends DecodedTables {
  /** Some views of it are held until the garbage collector finds out. */
  isKept: boolean
  isForgotten: boolean
}

/**
 * The tables of packs that were used last. Those of a merged pack take megabytes: once they are forgotten, and all who
 * borrowed them have given them back, their memory goes to the pool.
 */
export class TableCache {
  readonly #cached: ByteCache<Cached>
  readonly #bufferPool: BufferPool
  /** How many borrow the tables with this key, or wait for them. */
  readonly #borrowers = new Map<string, number>()

  constructor(capacityBytes: number, bufferPool: BufferPool) {
    this.#bufferPool = bufferPool
    this.#cached = new ByteCache<Cached>(capacityBytes, tablesBytes, (key, cached) => {
      cached.isForgotten = true
      this.#freeIfUnused(key, cached)
    })
  }

  /** The tables, for callers that cannot say when they are done. */
  async get(key: string, load: () => Promise<DecodedTables>): Promise<PackTables> {
    const { cached, giveBack } = await this.#borrow(key, load)
    cached.isKept = true
    giveBack()
    return cached.tables
  }

  /** The tables, until they are given back: after that there must be no view of them. */
  async borrow(key: string, load: () => Promise<DecodedTables>): Promise<BorrowedTables> {
    const { cached, giveBack } = await this.#borrow(key, load)
    return { tables: cached.tables, giveBack }
  }

  /** Whether the tables are here or on their way; they do not count as used. */
  has(key: string): boolean {
    return this.#cached.peek(key) !== undefined
  }

  clear(): void {
    this.#cached.clear()
  }

  /** Counts the borrower before it waits: tables that are too large for the cache are forgotten as soon as they come. */
  async #borrow(
    key: string,
    load: () => Promise<DecodedTables>,
  ): Promise<{ readonly cached: Cached; readonly giveBack: () => void }> {
    this.#borrowers.set(key, (this.#borrowers.get(key) ?? 0) + 1)
    try {
      const cached = await this.#cached.get(key, async () => ({ ...(await load()), isKept: false, isForgotten: false }))
      return { cached, giveBack: () => this.#leave(key, cached) }
    } catch (error) {
      this.#leave(key)
      throw error
    }
  }

  #leave(key: string, cached?: Cached): void {
    const others = (this.#borrowers.get(key) ?? 1) - 1
    if (others > 0) this.#borrowers.set(key, others)
    else this.#borrowers.delete(key)
    if (cached?.isForgotten === true) this.#freeIfUnused(key, cached)
  }

  #freeIfUnused(key: string, cached: Cached): void {
    if (!cached.isKept && !this.#borrowers.has(key)) giveBackTables(this.#bufferPool, cached)
  }
}
