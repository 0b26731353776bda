import type { CollectedAmount, CollectionCause, ObjectAmount } from '../../object/collection.ts'
import type { PackTables } from '../pack/pack-format.ts'
import { blockOf } from '../pack/segment.ts'

/** Counts objects by their lines. */
export class Tally {
  #objects = 0
  #jsonBytes = 0
  #storedBytes = 0

  add(tables: PackTables, ordinal: number): void {
    this.#objects++
    this.#jsonBytes += textBytesOf(tables, ordinal)
    this.#storedBytes += storedBytesOf(tables, ordinal)
  }

  get amount(): ObjectAmount {
    return { objects: this.#objects, jsonBytes: this.#jsonBytes, storedBytes: this.#storedBytes }
  }
}

/** Counts objects by the cause of their collection. */
export class CauseTally {
  readonly #byCause: Readonly<Record<CollectionCause, Tally>> = {
    neverReferenced: new Tally(),
    oldVersion: new Tally(),
    replaced: new Tally(),
  }

  add(cause: CollectionCause, tables: PackTables, ordinal: number): void {
    this.#byCause[cause].add(tables, ordinal)
  }

  get amount(): CollectedAmount {
    const { neverReferenced, oldVersion, replaced } = this.#byCause
    const byCause = {
      neverReferenced: neverReferenced.amount,
      oldVersion: oldVersion.amount,
      replaced: replaced.amount,
    }
    return { ...sumOf(Object.values(byCause)), byCause }
  }
}

export function sumOf(amounts: readonly ObjectAmount[]): ObjectAmount {
  const sum = { objects: 0, jsonBytes: 0, storedBytes: 0 }
  for (const { objects, jsonBytes, storedBytes } of amounts) {
    sum.objects += objects
    sum.jsonBytes += jsonBytes
    sum.storedBytes += storedBytes
  }
  return sum
}

/** Bytes of an object's JSON: a line is the id, a tab, the text and a line end. */
export function textBytesOf({ lineBytes, ids }: PackTables, ordinal: number): number {
  return lineBytes[ordinal] - (ids.ends[ordinal] - (ordinal === 0 ? 0 : ids.ends[ordinal - 1])) - 2
}

/** The share of a line in its compressed block, in whole bytes: sums do not depend on their order. */
function storedBytesOf({ directory, lineBytes }: PackTables, ordinal: number): number {
  const block = blockOf(directory, ordinal)
  return Math.round((directory.storedBytes[block] * lineBytes[ordinal]) / directory.rawBytes[block])
}
