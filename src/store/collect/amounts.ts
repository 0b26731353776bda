import type { CollectedAmount, CollectionCause, ObjectAmount } from '../../object/collection.ts'
import { type PackTables, textBytesOf } from '../pack/pack-format.ts'
import { blockOf } from '../pack/segment.ts'
import type { PackRecord } from '../records/pack-record.ts'

/** Counts objects by their lines. */
export class Tally {
  #objects = 0
  #jsonBytes = 0
  #storedBytes = 0

  add(lines: PackLines, ordinal: number): void {
    this.#objects++
    this.#jsonBytes += lines.jsonBytes(ordinal)
    this.#storedBytes += lines.storedBytes(ordinal)
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
  }

  add(cause: CollectionCause, lines: PackLines, ordinal: number): void {
    this.#byCause[cause].add(lines, ordinal)
  }

  get amount(): CollectedAmount {
    const { neverReferenced, oldVersion } = this.#byCause
    const byCause = { neverReferenced: neverReferenced.amount, oldVersion: oldVersion.amount }
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

/** Bytes of a row of the tables besides its id and its targets: its size, its checksum, and three ends. */
const ROW_BYTES = 20
const TARGET_BYTES = 4

/** What each line of a pack takes up. */
export class PackLines {
  readonly #tables: PackTables
  /** The bytes of tables in storage for each byte of rows: what rows share is divided among them. */
  readonly #tableShare: number

  constructor(tables: PackTables, { packBytes, tablesStart }: Pick<PackRecord, 'packBytes' | 'tablesStart'>) {
    const { objects, ids, references, claims } = tables
    const targets = references.targets.length + claims.targets.length
    this.#tables = tables
    this.#tableShare = (packBytes - tablesStart) / (objects * ROW_BYTES + ids.bytes.length + targets * TARGET_BYTES)
  }

  jsonBytes(ordinal: number): number {
    return textBytesOf(this.#tables, ordinal)
  }

  /** The share of the line in its compressed block and in the tables. In whole bytes: sums do not depend on their order. */
  storedBytes(ordinal: number): number {
    const { directory, lineBytes, ids, references, claims } = this.#tables
    const block = blockOf(directory, ordinal)
    const blockBytes = (directory.storedBytes[block] * lineBytes[ordinal]) / directory.rawBytes[block]
    const targets = lengthAt(references.ends, ordinal) + lengthAt(claims.ends, ordinal)
    const rowBytes = ROW_BYTES + lengthAt(ids.ends, ordinal) + targets * TARGET_BYTES
    return Math.round(blockBytes + rowBytes * this.#tableShare)
  }
}

function lengthAt(ends: Uint32Array, index: number): number {
  return ends[index] - (index === 0 ? 0 : ends[index - 1])
}
