import type { Level } from 'level'
import { passErrno } from '../common/errno.ts'
import { QuickReads } from '../common/quick-reads.ts'

type Database = Pick<Level<Uint8Array, Uint8Array>, 'getMany' | 'getSync'>

/** More keys are read in the thread pool. */
const QUICK_KEYS_MAX = 8

/** An index of a key, in the lower bits of a number whose upper ones are bytes of the key. */
const INDEX_RANGE = 2 ** 20

/**
 * Reads many keys in about the order in which a database has them, forwards and backwards in turn. It keeps 64 of its
 * files open, those that it used last. Keys in any other order would open the others again and again, and so would calls
 * that all go forwards: each begins with the files that the one before it has closed.
 */
export class SortedReader {
  readonly #database: Database
  readonly #quick: QuickReads
  #isBackwards = false

  constructor(database: Database, quick: QuickReads = new QuickReads()) {
    this.#database = database
    this.#quick = quick
  }

  /** The values of a few keys, in their order; `undefined` if they must be read with `getMany`. */
  getNow(keys: readonly Uint8Array[]): (Uint8Array | undefined)[] | undefined {
    if (keys.length > QUICK_KEYS_MAX) return undefined
    return this.#quick.tryNow(() => keys.map((key) => this.#database.getSync(key)))
  }

  /** The values of keys, in the order of the keys; at most `INDEX_RANGE` keys. */
  async getMany(keys: readonly Uint8Array[]): Promise<(Uint8Array | undefined)[]> {
    const order = orderOf(keys)
    if (this.#isBackwards) order.reverse()
    this.#isBackwards = !this.#isBackwards
    const read = await passErrno(this.#database.getMany(order.map((index) => keys[index])))
    const values = Array.from<Uint8Array | undefined>({ length: keys.length })
    for (const [at, index] of order.entries()) values[index] = read[at]
    return values
  }
}

/** Sorted by the four bytes behind the beginning that all keys share: that suffices to find neighbours. */
function orderOf(keys: readonly Uint8Array[]): number[] {
  const shared = sharedBytes(keys)
  const ranks = Float64Array.from(keys, (key, index) => {
    let rank = 0
    for (let at = shared; at < shared + 4; at++) rank = rank * 256 + (key[at] ?? 0)
    return rank * INDEX_RANGE + index
  }).sort()
  return Array.from(ranks, (rank) => rank % INDEX_RANGE)
}

function sharedBytes(keys: readonly Uint8Array[]): number {
  let shared = keys[0]?.length ?? 0
  for (const key of keys) {
    let at = 0
    while (at < shared && key[at] === keys[0][at]) at++
    shared = at
  }
  return shared
}
