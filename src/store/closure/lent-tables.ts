import { readAhead } from '../bytes/read-ahead.ts'
import type { PackTables } from '../pack/pack-format.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { BorrowedTables } from '../records/table-cache.ts'

/** Whoever goes through more objects reads tables that no cache can keep. */
const KEPT_OBJECTS_MAX = 65_536
/** Tables that are read more often than this are left in the cache: the graph leads to and fro between some packs. */
const READS_MAX = 4
const PACKS_AT_ONCE = 8
/** Tables of so many packs are in memory at a time, and of so many objects unless it is one pack. */
const AHEAD_BOUNDS = {
  count: PACKS_AT_ONCE,
  bytes: 65_536,
  bytesOf: ({ pack }: { readonly pack: Pack }): number => pack.record.objects,
}

type TableSource = Pick<PackCatalog, 'sharedTables' | 'borrowTables'>

/**
 * The tables that one walk or one answer reads. A small one leaves them in the cache of the catalog. A large one reads
 * most of them into memory that it uses again and again: in the cache they would take the place of what others need, and
 * be gone before they are asked for again; and garbage that is made so fast costs as much as the walk.
 */
export class LentTables {
  readonly #catalog: TableSource
  /** How often the tables of each pack were read. */
  readonly #reads = new Map<string, number>()
  readonly #storedBytesMax: number
  /** In all of those packs. */
  #objects = 0

  /** Tables that take more than `storedBytesMax` in storage are left in the cache: for answers, which share them there. */
  constructor(catalog: TableSource, { storedBytesMax = Infinity }: { readonly storedBytesMax?: number } = {}) {
    this.#catalog = catalog
    this.#storedBytesMax = storedBytesMax
  }

  /** Lends the tables to `use`, which keeps no view of them. */
  async lend<T>(pack: Pack, use: (tables: PackTables) => Promise<T>): Promise<T> {
    const { tables, giveBack } = await this.borrow(pack)
    try {
      return await use(tables)
    } finally {
      giveBack()
    }
  }

  /** Lends the tables of each pack in turn, and meanwhile reads those of the next ones. Rejects as `use` does. */
  async lendEach<T extends { readonly pack: Pack }>(
    items: AsyncIterable<T> | Iterable<T>,
    use: (item: T, tables: PackTables) => Promise<void>,
  ): Promise<void> {
    const waiting = new Set<() => void>()
    let isOver = false
    const borrowed = readAhead(items, AHEAD_BOUNDS, async (item) => {
      const { tables, giveBack } = await this.borrow(item.pack)
      if (isOver) giveBack()
      else waiting.add(giveBack)
      return { item, tables, giveBack }
    })
    try {
      for await (const { item, tables, giveBack } of borrowed) {
        await use(item, tables)
        waiting.delete(giveBack)
        giveBack()
      }
    } finally {
      isOver = true
      for (const giveBack of waiting) giveBack()
    }
  }

  /** Lends the tables until they are given back: after that there must be no view of them. */
  async borrow(pack: Pack): Promise<BorrowedTables> {
    const { packId, objects, packBytes, tablesStart } = pack.record
    const reads = (this.#reads.get(packId) ?? 0) + 1
    this.#reads.set(packId, reads)
    if (reads === 1) this.#objects += objects
    const isLarge = packBytes - tablesStart > this.#storedBytesMax
    if (this.#objects <= KEPT_OBJECTS_MAX || reads > READS_MAX || isLarge) return this.#catalog.sharedTables(pack)
    return this.#catalog.borrowTables(pack)
  }
}

/** The packs with these numbers, for `lendEach`. */
export async function* packsOf(
  catalog: PackCatalog,
  project: ProjectView,
  sequences: readonly number[],
): AsyncGenerator<{ readonly pack: Pack }> {
  for (let first = 0; first < sequences.length; first += PACKS_AT_ONCE) {
    const some = sequences.slice(first, first + PACKS_AT_ONCE)
    const packs = await Promise.all(some.map((sequence) => catalog.pack(project, sequence)))
    for (const pack of packs) yield { pack }
  }
}
