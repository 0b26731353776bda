import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { Fragment, HaveOutcome, ReusedMemory, Selection, SelectionReadOptions } from '../../object/selection.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import { countObjects, packsBytes, type PackSelection } from './closure.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { LentTables } from './lent-tables.ts'
import { blockOf, segmentOfBlock, segmentsOf, type Segment } from '../pack/segment.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'

/** Chosen objects, pack by pack, in the order of their places. */
export interface ChosenObjects {
  readonly packs: readonly PackSelection[]
  /** Sent before all others. */
  readonly root?: { readonly sequence: number; readonly ordinal: number }
}

/** Segments that an answer holds at a time: there can be hundreds of answers. */
const SEGMENTS_AT_ONCE = 64
/** Of larger tables, those of merged packs, a copy for each answer would be too much. */
const OWN_TABLES_BYTES_MAX = 262_144

/**
 * The segments of the chosen objects, the root's and then all of each pack: only the tables of one pack at a time are
 * in use, so the segments of a pack are to be taken before the next pack is asked for.
 */
export async function* chosenSegments(
  catalog: PackCatalog,
  project: ProjectView,
  { packs, root }: ChosenObjects,
): AsyncGenerator<Iterable<Segment>> {
  if (root !== undefined) yield [await rootSegment(catalog, project, root)]
  const lent = new LentTables(catalog, { storedBytesMax: OWN_TABLES_BYTES_MAX })
  for (const { sequence, wanted } of packs) {
    const pack = await catalog.pack(project, sequence)
    const { tables, giveBack } = await lent.borrow(pack)
    try {
      const rest = sequence === root?.sequence ? wanted.without(onlyBit(tables.objects, root.ordinal)) : wanted
      yield segmentsOf(tables, rest, pack.source)
    } finally {
      giveBack()
    }
  }
}

export async function* inBatches(packs: AsyncIterable<Iterable<Segment>>): AsyncGenerator<readonly Segment[]> {
  for await (const segments of packs) {
    let batch: Segment[] = []
    for (const segment of segments) {
      if (batch.push(segment) < SEGMENTS_AT_ONCE) continue
      yield batch
      batch = []
    }
    if (batch.length > 0) yield batch
  }
}

async function rootSegment(
  catalog: PackCatalog,
  project: ProjectView,
  root: { sequence: number; ordinal: number },
): Promise<Segment> {
  const pack = await catalog.pack(project, root.sequence)
  return catalog.withTables(pack, (tables) =>
    segmentOfBlock(tables, blockOf(tables.directory, root.ordinal), onlyBit(tables.objects, root.ordinal), pack.source),
  )
}

function onlyBit(size: number, index: number): Bitmap {
  const bitmap = Bitmap.empty(size)
  bitmap.add(index)
  return bitmap
}

export interface SelectionFacts {
  readonly missing: IdSet
  /** Set if `missing` holds only the first of them. */
  readonly missingCount?: number
  readonly textBytes?: number
  readonly closureDigest?: string
  readonly have?: readonly HaveOutcome[]
}

/**
 * A selection without a plan: blocks that belong to it entirely are passed on unchanged, others are inflated and cut.
 */
export class GraphSelection implements Selection {
  readonly objects: number
  readonly missing: number
  readonly textBytes?: number
  readonly closureDigest?: string
  readonly have?: readonly HaveOutcome[]
  readonly #heldBytes: number
  readonly #missing: IdSet
  readonly #segments: () => AsyncIterable<readonly Segment[]>
  readonly #reader: SegmentReader
  readonly #reading: <T>(items: AsyncIterable<T>) => AsyncIterable<T>
  readonly #buffers: AnswerBuffers

  constructor(
    catalog: PackCatalog,
    reader: SegmentReader,
    project: ProjectView,
    chosen: ChosenObjects,
    facts: SelectionFacts,
  ) {
    this.objects = countObjects(chosen.packs)
    this.#heldBytes = packsBytes(chosen.packs) + facts.missing.memoryBytes
    this.missing = facts.missingCount ?? facts.missing.size
    this.textBytes = facts.textBytes
    this.closureDigest = facts.closureDigest
    this.have = facts.have
    this.#missing = facts.missing
    this.#reader = reader
    this.#buffers = reader.memory.open()
    this.#reading = (items) => catalog.reading(project, items)
    this.#segments = () => inBatches(chosenSegments(catalog, project, chosen))
  }

  get roomBytes(): number {
    return this.#buffers.roomBytes
  }

  get memory(): ReusedMemory {
    return this.#reader.memory.bufferPool
  }

  lease(memory: MemoryLease): Promise<void> {
    return this.#buffers.lease(memory, this.#heldBytes)
  }

  missingIds(limit: number): Promise<readonly string[]> {
    return Promise.resolve(firstIds(this.#missing, limit))
  }

  lines({ signal }: SelectionReadOptions): AsyncIterable<Uint8Array> {
    return this.#reading(this.#reader.lines(this.#segments(), { signal, buffers: this.#buffers }))
  }

  fragments({ signal }: SelectionReadOptions): AsyncIterable<readonly Fragment[]> {
    return this.#reading(this.#reader.fragments(this.#segments(), { signal, buffers: this.#buffers }))
  }

  release(): void {
    this.#buffers.end()
  }
}

export function firstIds(ids: IdSet, limit: number): string[] {
  return Array.from({ length: Math.min(limit, ids.size) }, (_, i) => ids.stringAt(i))
}
