import { passErrno } from '../common/errno.ts'
import type { LevelDatabase } from './database.ts'

/** An index of a key, in the lower bits of a number whose upper ones are bytes of the key. */
const INDEX_RANGE = 2 ** 20

/**
 * The values of keys, in their order; at most `INDEX_RANGE` keys. They are read in about the order in which the database
 * has them: it keeps 64 of its files open, and keys in any other order would open the others again and again.
 */
export async function readMany(
  database: LevelDatabase,
  keys: readonly Uint8Array[],
): Promise<(Uint8Array | undefined)[]> {
  const order = orderOf(keys)
  const read = await passErrno(database.getMany(order.map((index) => keys[index])))
  const values = Array.from<Uint8Array | undefined>({ length: keys.length })
  for (const [at, index] of order.entries()) values[index] = read[at]
  return values
}

/** Sorted by the four bytes behind the beginning that all keys share: that suffices to find neighbours. */
function orderOf(keys: readonly Uint8Array[]): readonly number[] {
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
