import { crc32 } from 'node:zlib'
import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { Party } from '../../memory/memory-lease.ts'
import type { DeflatePool } from '../../compression/deflate-pool.ts'
import type { Closure, PackSelection } from '../closure/closure.ts'
import { chosenSegments } from '../closure/graph-selection.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import {
  encodePlanHeader,
  encodePlanTables,
  PATCH_SOURCE,
  PlanRowList,
  type PlanPack,
  type PlanTables,
} from './plan-format.ts'
import { measureLines, type PatchFragment, patchPieces } from './plan-patch.ts'
import { readAhead } from '../bytes/read-ahead.ts'
import type { Segment } from '../pack/segment.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
const FRAGMENTS_IN_FLIGHT = 4

export interface PlanRequest {
  readonly project: ProjectView
  readonly closure: Closure
  /** The objects to send: all of the closure, or the rest of it after subtracting others. */
  readonly packs: readonly PackSelection[]
  /** The first caller. */
  readonly party: Party
}

export interface PlanMakerOptions {
  /**
   * Shorter runs of whole blocks are copied into the patch: reading them one by one, forever, costs more than keeping
   * them once more.
   */
  readonly runInPlaceBytesMin: number
  /** Whether the tables are stored behind the patch: plans in memory keep them there. */
  readonly isStored: boolean
}

export interface MadePlan {
  readonly tables: PlanTables
  readonly tablesStart: number
}

/** Stores the plan's bytes: as a blob, or in memory. */
export type PlanSink = (content: AsyncIterable<Uint8Array>) => Promise<void>

/** Makes the plan of one answer. */
export class PlanMaker {
  readonly #order: PlanRequest
  readonly #options: PlanMakerOptions
  readonly #catalog: PackCatalog
  readonly #reader: SegmentReader
  readonly #deflate: DeflatePool
  readonly #packs: PlanPack[] = []
  readonly #packNumbers = new Map<number, number>()
  /** Rows of packs and the root's; rows of the patch follow them. */
  readonly #rows = new PlanRowList()
  readonly #patchRows = new PlanRowList()

  constructor(
    order: PlanRequest,
    catalog: PackCatalog,
    reader: SegmentReader,
    deflate: DeflatePool,
    options: PlanMakerOptions,
  ) {
    this.#order = order
    this.#options = options
    this.#catalog = catalog
    this.#reader = reader
    this.#deflate = deflate
  }

  async make(planId: string, sink: PlanSink, signal: AbortSignal): Promise<MadePlan> {
    const header = encodePlanHeader(planId, this.#order.project.projectId)
    const made: { tables?: PlanTables; tablesStart: number } = { tablesStart: header.length }
    await sink(this.#content(header, made, signal))
    if (made.tables === undefined) throw new Error('a plan was stored before it was made')
    return { tables: made.tables, tablesStart: made.tablesStart }
  }

  async *#content(
    header: Uint8Array,
    made: { tables?: PlanTables; tablesStart: number },
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    yield header
    for await (const stored of this.#patch(header.length, signal)) {
      made.tablesStart += stored.length
      yield stored
    }
    const { closure, packs } = this.#order
    made.tables = {
      rows: this.#rows.followedBy(this.#patchRows),
      packs: this.#packs,
      closureDigest: closure.digest,
      closure: packs === closure.packs ? closure : undefined,
      missing: closure.missing,
      absentClaims: closure.absentClaims,
    }
    if (this.#options.isStored) yield await encodePlanTables(made.tables, this.#reader.environment)
  }

  /** Yields the patch, which starts at byte `start` of the blob, and notes all rows on the way. */
  async *#patch(start: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let at = start
    let isRoot = true
    for await (const fragment of this.#fragments(signal)) {
      const { rawBytes, rawCrc32, objects, idBytes, stored } = fragment
      const row = {
        start: at,
        end: at + stored.length,
        rawBytes,
        rawCrc32,
        storedCrc32: crc32(stored),
        objects,
        idBytes,
      }
      // The root comes first, even if its line lies in the patch.
      const rows = isRoot && this.#rootIsInPatch ? this.#rows : this.#patchRows
      rows.push(PATCH_SOURCE, row)
      isRoot = false
      at += stored.length
      yield stored
    }
  }

  #rootIsInPatch = false

  async *#fragments(signal: AbortSignal): AsyncGenerator<PatchFragment> {
    const buffers = this.#reader.memory.open()
    try {
      yield* this.#fragmentsWithin(buffers, signal)
    } finally {
      buffers.end()
    }
  }

  async *#fragmentsWithin(buffers: AnswerBuffers, signal: AbortSignal): AsyncGenerator<PatchFragment> {
    const { project, closure, packs } = this.#order
    const batches = chosenSegments(this.#catalog, project, { packs, root: closure.root })
    const first = (await batches.next()) as IteratorYieldResult<Iterable<Segment>>
    const [root] = first.value
    if (root.cut !== undefined) {
      this.#rootIsInPatch = true
      for await (const lines of this.#reader.lines([[root]], { signal, buffers })) yield await this.#compress(lines)
    } else {
      await this.#noteWhole([root], closure.root.sequence)
    }
    const pieces = patchPieces(this.#reader.pieces(this.#patchSegments(batches), { signal, buffers }))
    yield* readAhead(pieces, { count: FRAGMENTS_IN_FLIGHT }, (piece) =>
      'lines' in piece ? this.#compress(piece.lines) : Promise.resolve(piece),
    )
  }

  /** Passes on the segments that go into the patch; long runs of whole blocks become rows that refer to their packs. */
  async *#patchSegments(batches: AsyncIterable<Iterable<Segment>>): AsyncGenerator<readonly Segment[]> {
    const sequences = this.#order.packs[Symbol.iterator]()
    for await (const segments of batches) {
      const { sequence } = (sequences.next() as IteratorYieldResult<PackSelection>).value
      const rest: Segment[] = []
      for (const run of wholeRuns(segments)) {
        if (this.#staysInPlace(run)) await this.#noteWhole(run, sequence)
        else rest.push(...run)
      }
      if (rest.length > 0) yield rest
    }
  }

  #staysInPlace(run: readonly Segment[]): boolean {
    return run[0].cut === undefined && run[run.length - 1].end - run[0].start >= this.#options.runInPlaceBytesMin
  }

  async #noteWhole(run: readonly Segment[], sequence: number): Promise<void> {
    let number = this.#packNumbers.get(sequence)
    if (number === undefined) {
      const { record } = await this.#catalog.pack(this.#order.project, sequence)
      number = this.#packs.push({ sequence, packId: record.packId, isInline: record.content !== 'blob' }) - 1
      this.#packNumbers.set(sequence, number)
    }
    for (const segment of run) this.#rows.push(number, segment)
  }

  async #compress(lines: Uint8Array): Promise<PatchFragment> {
    return {
      stored: await this.#deflate.deflate(lines),
      rawBytes: lines.length,
      rawCrc32: crc32(lines),
      ...measureLines(lines),
    }
  }
}

/** Adjacent whole segments, together; each cut one on its own. */
function* wholeRuns(segments: Iterable<Segment>): Generator<readonly Segment[]> {
  let run: Segment[] = []
  for (const segment of segments) {
    const last = run.at(-1)
    if (last !== undefined && (segment.cut !== undefined || last.cut !== undefined || segment.start !== last.end)) {
      yield run
      run = []
    }
    run.push(segment)
  }
  if (run.length > 0) yield run
}
