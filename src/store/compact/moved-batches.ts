import type { Environment } from '../../environment.ts'
import { Yielder } from '../../async/yielder.ts'
import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { ObjectBatch } from '../../object/batch.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import { inBatches } from '../closure/graph-selection.ts'
import { entryBytes, type PackTables } from '../pack/pack-format.ts'
import { segmentsOf } from '../pack/segment.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import type { Pack, PackCatalog } from '../records/pack-catalog.ts'

/** Names that are copied between two looks at the clock. */
const NAMES_AT_ONCE = 512
/** A batch ends with the object that reaches this many mentions. */
const MENTIONS_PER_BATCH = 4_096

/** Objects of one pack that move to a merged one, in the order of their ordinals. */
export interface MovingObjects {
  readonly pack: Pack
  readonly wanted: Bitmap
  /** They begin another part of the merged pack: no block holds objects of two parts. */
  readonly beginsPart: boolean
  /** Raw bytes of the blocks of that part. */
  readonly blockBytes: number
}

/** Objects as they lie in their pack, with the checksums of their texts from its tables. */
export interface MovedBatch extends ObjectBatch {
  readonly textCrc32: Uint32Array
  readonly beginsPart: boolean
  readonly blockBytes: number
  /** Equal numbers of neighbours say that they are probably versions of one object. */
  readonly signs?: Uint32Array
}

interface Reading {
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly environment: Environment
}

interface Cut {
  readonly lines: Uint8Array
  readonly ordinals: readonly number[]
}

/**
 * The objects of each part, in batches: text from the blocks of their packs, references and claims from the tables. No
 * JSON is parsed. Throws `corrupt_data` for a block or a text that does not match its checksum.
 */
export async function* movedBatches(
  { catalog, reader, environment }: Reading,
  parts: readonly MovingObjects[],
  signal: AbortSignal,
): AsyncGenerator<MovedBatch> {
  const yielder = new Yielder(environment)
  const buffers = reader.memory.open()
  try {
    for (const moving of parts) {
      const { tables, giveBack } = await catalog.sharedTables(moving.pack)
      let { beginsPart } = moving
      const { blockBytes } = moving
      try {
        for await (const cut of cutsOf(reader, { ...moving, tables }, { buffers, signal })) {
          yield { ...(await batchOf(tables, cut, yielder)), beginsPart, blockBytes }
          beginsPart = false
        }
      } finally {
        giveBack()
      }
    }
  } finally {
    buffers.end()
  }
}

/** Runs of lines with their ordinals, each of a size that suits a batch. */
async function* cutsOf(
  reader: SegmentReader,
  { pack, tables, wanted }: MovingObjects & { readonly tables: PackTables },
  reading: { readonly buffers: AnswerBuffers; readonly signal: AbortSignal },
): AsyncGenerator<Cut> {
  const segments = inBatches(once(segmentsOf(tables, wanted, pack.source)))
  let ordinal = 0
  for await (const lines of reader.lines(segments, reading)) {
    let first = 0
    let end = 0
    let mentions = 0
    let ordinals: number[] = []
    while (end < lines.length) {
      while (!wanted.has(ordinal)) ordinal++
      end += tables.lineBytes[ordinal]
      mentions += rowLength(tables.references.ends, ordinal) + rowLength(tables.claims.ends, ordinal)
      ordinals.push(ordinal++)
      if (mentions < MENTIONS_PER_BATCH && end < lines.length) continue
      yield { lines: lines.subarray(first, end), ordinals }
      first = end
      mentions = 0
      ordinals = []
    }
  }
}

async function* once<T>(item: T): AsyncGenerator<T> {
  yield item
}

async function batchOf(
  tables: PackTables,
  { lines, ordinals }: Cut,
  yielder: Yielder,
): Promise<Omit<MovedBatch, 'beginsPart' | 'blockBytes'>> {
  const names = new NameTable(tables, ordinals)
  const batch = {
    count: ordinals.length,
    lines,
    lineBytes: Uint32Array.from(ordinals, (ordinal) => tables.lineBytes[ordinal]),
    idBytes: Uint16Array.from(ordinals, (ordinal) => entryBytes(tables.ids, ordinal)),
    textCrc32: Uint32Array.from(ordinals, (ordinal) => tables.textCrc32[ordinal]),
    referenceEnds: new Uint32Array(ordinals.length),
    claimEnds: new Uint32Array(ordinals.length),
  }
  for (const [i, ordinal] of ordinals.entries()) {
    batch.referenceEnds[i] = await names.add(tables.references, ordinal, yielder)
    batch.claimEnds[i] = await names.add(tables.claims, ordinal, yielder)
  }
  return { ...batch, names: names.bytes, nameEnds: names.ends }
}

/** The ids that some objects mention, one after the other. */
class NameTable {
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
  readonly #tables: PackTables
  #count = 0
  #length = 0

  constructor(tables: PackTables, ordinals: readonly number[]) {
    this.#tables = tables
    let count = 0
    let length = 0
    for (const { ends, targets } of [tables.references, tables.claims]) {
      for (const ordinal of ordinals) {
        count += rowLength(ends, ordinal)
        for (let i = rowStart(ends, ordinal); i < ends[ordinal]; i++) length += this.#idLength(targets[i])
      }
    }
    this.bytes = new Uint8Array(length)
    this.ends = new Uint32Array(count)
  }

  /** Adds a row; returns the number of names so far. */
  async add({ ends, targets }: PackTables['references'], ordinal: number, yielder: Yielder): Promise<number> {
    for (let i = rowStart(ends, ordinal); i < ends[ordinal]; i++) {
      this.#append(targets[i])
      if (this.#count % NAMES_AT_ONCE === 0) await yielder.due()
    }
    return this.#count
  }

  #append(target: number): void {
    const { objects, ids, externals } = this.#tables
    const table = target < objects ? ids : externals
    const row = target < objects ? target : target - objects
    for (let at = rowStart(table.ends, row); at < table.ends[row]; at++) this.bytes[this.#length++] = table.bytes[at]
    this.ends[this.#count++] = this.#length
  }

  #idLength(target: number): number {
    const { objects, ids, externals } = this.#tables
    return target < objects ? rowLength(ids.ends, target) : rowLength(externals.ends, target - objects)
  }
}

function rowStart(ends: Uint32Array, row: number): number {
  return row === 0 ? 0 : ends[row - 1]
}

function rowLength(ends: Uint32Array, row: number): number {
  return ends[row] - rowStart(ends, row)
}
