import { converted } from '../../async/relay.ts'
import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { MemoryLease } from '../../memory/memory-lease.ts'
import { SharedMemory } from '../../memory/shared-memory.ts'
import type { AbsentIds } from '../closure/absent-ids.ts'
import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type {
  Fragment,
  HaveOutcome,
  PlannedSelection,
  ReusedMemory,
  Selection,
  SelectionReadOptions,
} from '../../object/selection.ts'
import { packsBytes } from '../closure/closure.ts'
import { firstIds } from '../closure/graph-selection.ts'
import { packBlobName } from '../records/keys.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { PlanDoubts } from './plan-doubts.ts'
import { PATCH_SOURCE, planDigest, totalsOf, type PlanPack, type PlanTables, type PlanTotals } from './plan-format.ts'
import { checkRows, type PlannedRun, plannedRuns } from './planned-runs.ts'
import type { ByteSource, Segment } from '../pack/segment.ts'
import type { LoadedRun, SegmentReader } from '../pack/segment-reader.ts'
import { gapBytesMax } from '../pack/spans.ts'

/** Rows that become segments at a time: a plan can have tens of thousands, and there can be hundreds of answers. */
const ROWS_AT_ONCE = 64
/**
 * Stored bytes are compared with their CRC when a plan is first sent after it was loaded, and again after this long.
 */
const VERIFY_INTERVAL_MS = 10 * 60_000
/** How often the record of a loaded plan is looked at: another server may have replaced or evicted it. */
const LOOK_INTERVAL_MS = 10 * 60_000

/** The users of the bytes of a plan, however often it was loaded. */
export class PlanRefCount {
  /** Answers that are being sent by it. */
  answers = 0
  /** The plan was replaced or evicted, or turned out to be damaged: no new use may begin. */
  isRetired = false
}

export interface LoadedPlanOptions {
  readonly use?: PlanRefCount | undefined
  /** The layout of the project in which its packs were there. */
  readonly layout: number
  /** Absent if it was read from storage. */
  readonly madeForLayout?: number
  /** The project's sequence that the plan was made for. */
  readonly sequence: number
  readonly absent?: AbsentIds
  readonly environment: Environment
}

/** A plan in memory, shared by every answer that is sent by it. */
export class LoadedPlan {
  /** The source of the patch. */
  readonly source: ByteSource
  readonly tables: PlanTables
  readonly totals: PlanTotals
  readonly digest: string
  /** Instead of `tables.absentClaims`, if very many ids were absent, including missing ones. */
  readonly absent: AbsentIds | undefined
  /** The project's sequence at which the absent ids were last seen to be absent, with no upload under way. */
  checkedSequence = -1
  /** The layout of the project in which the packs that it names were last seen to be there. */
  layout: number
  /** The layout that it was made for, if it was made by this process. */
  readonly madeForLayout: number | undefined
  /** What it takes from packs that are not sure of it, in the layout for which that was found last. */
  doubts: PlanDoubts | undefined
  readonly use: PlanRefCount
  /** The memory that the answers that are being sent by it need it to keep. */
  readonly shared: SharedMemory
  readonly #environment: Environment
  #verifiedAtMs = -Infinity
  #lookedAtMs: number

  constructor(
    source: ByteSource,
    tables: PlanTables,
    { use = new PlanRefCount(), layout, madeForLayout, absent, environment }: LoadedPlanOptions,
  ) {
    this.#environment = environment
    this.#lookedAtMs = environment.monotonicMs()
    this.source = source
    this.absent = absent
    this.layout = layout
    this.madeForLayout = madeForLayout
    this.tables = tables
    this.use = use
    this.totals = totalsOf(tables.rows)
    this.digest = planDigest(tables.rows)
    this.shared = new SharedMemory(this.memoryBytes)
  }

  get memoryBytes(): number {
    const { rows, closure, packs } = this.tables
    const bitmapBytes = closure === undefined ? 0 : packsBytes(closure.packs)
    const patchBytes = 'bytes' in this.source ? this.source.bytes.length : 0
    return (
      rows.sources.length * 32 +
      patchBytes +
      bitmapBytes +
      packs.length * 96 +
      this.tables.missing.memoryBytes +
      this.tables.absentClaims.memoryBytes
    )
  }

  /** The same with only the parts that are needed to find it again. */
  get cachedBytes(): number {
    const { closure } = this.tables
    const doubtBytes = closure === undefined ? 0 : packsBytes(closure.packs)
    return this.memoryBytes + doubtBytes + (this.absent?.memoryBytes ?? 0)
  }

  get isDueForVerification(): boolean {
    return this.#environment.monotonicMs() - this.#verifiedAtMs > VERIFY_INTERVAL_MS
  }

  get isDueForLook(): boolean {
    return this.#environment.monotonicMs() - this.#lookedAtMs > LOOK_INTERVAL_MS
  }

  looked(): void {
    this.#lookedAtMs = this.#environment.monotonicMs()
  }

  verified(): void {
    this.#verifiedAtMs = this.#environment.monotonicMs()
  }
}

/** A selection in which every row is whole, so that every byte of its answers is known before the first one. */
export class PlanSelection implements Selection, PlannedSelection {
  readonly objects: number
  readonly missing: number
  readonly closureDigest: string
  readonly have?: readonly HaveOutcome[]
  readonly digest: string
  readonly storedBytes: number
  readonly rawBytes: number
  readonly crc32: number
  readonly idBytes: number
  readonly #loaded: LoadedPlan
  readonly #catalog: PackCatalog
  readonly #reader: SegmentReader
  readonly #project: ProjectView
  readonly #buffers: AnswerBuffers
  #isLeased = false
  #isReleased = false

  constructor(
    loaded: LoadedPlan,
    catalog: PackCatalog,
    reader: SegmentReader,
    project: ProjectView,
    have?: readonly HaveOutcome[],
  ) {
    const { totals, tables } = loaded
    this.objects = totals.objects
    this.storedBytes = totals.storedBytes
    this.rawBytes = totals.rawBytes
    this.crc32 = totals.crc32
    this.idBytes = totals.idBytes
    this.missing = tables.missing.size
    this.closureDigest = tables.closureDigest
    this.digest = loaded.digest
    this.have = have
    this.#loaded = loaded
    this.#catalog = catalog
    this.#reader = reader
    // The plan may be newer than the view: it was made when packs had been merged.
    this.#project = { ...project, layout: loaded.layout }
    this.#buffers = reader.memory.open()
    loaded.use.answers++
  }

  get plan(): PlannedSelection {
    return this
  }

  get roomBytes(): number {
    return this.#buffers.roomBytes
  }

  get memory(): ReusedMemory {
    return this.#reader.memory.bufferPool
  }

  async lease(memory: MemoryLease): Promise<void> {
    await this.#loaded.shared.use(memory)
    this.#isLeased = true
    await this.#buffers.lease(memory)
  }

  missingIds(limit: number): Promise<readonly string[]> {
    return Promise.resolve(firstIds(this.#loaded.tables.missing, limit))
  }

  lines({ signal }: SelectionReadOptions): AsyncIterable<Uint8Array> {
    return this.#watched(this.#reader.lines(this.#segments(0), { signal, buffers: this.#buffers }), (lines) => lines)
  }

  fragments({ signal }: SelectionReadOptions): AsyncIterable<readonly Fragment[]> {
    return this.#watched(
      this.#reader.fragments(this.#segments(0), { signal, buffers: this.#buffers }),
      (batch) => batch,
    )
  }

  stored(start: number, end: number, { signal }: SelectionReadOptions): AsyncIterable<Uint8Array> {
    const { rows } = this.#loaded.tables
    const first = this.#rowAt(start, (row) => rows.storedBytes[row])
    const last = this.#rowAt(end - 1, (row) => rows.storedBytes[row])
    const isVerifying = this.#loaded.isDueForVerification
    const runs = this.#runs(first.row, last.row + 1, { signal, isVerifying })
    let at = first.offset
    const passedOn = ({ bytes, readBytes }: LoadedRun<PlannedRun>): Uint8Array => {
      this.#buffers.passOn(readBytes)
      const from = Math.max(0, start - at)
      const to = Math.min(bytes.length, end - at)
      at += bytes.length
      return from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to)
    }
    const completed = (): void => {
      if (isVerifying && start === 0 && end === this.storedBytes) this.#loaded.verified()
    }
    return this.#watched(runs, passedOn, completed)
  }

  #runs(
    firstRow: number,
    endRow: number,
    { signal, isVerifying }: { readonly signal: AbortSignal; readonly isVerifying: boolean },
  ): AsyncIterable<LoadedRun<PlannedRun>> {
    const { rows } = this.#loaded.tables
    const { readBytesMax } = this.#reader
    const runs = plannedRuns(rows, {
      firstRow,
      endRow,
      bytesMax: () => Math.min(readBytesMax, this.#buffers.roomBytes),
      gapBytesMax: gapBytesMax(readBytesMax),
      sourceOf: this.#sources(),
    })
    return this.#reader.runs(runs, { signal, buffers: this.#buffers }, (loaded) => {
      if (isVerifying) checkRows(rows, loaded)
    })
  }

  linesFrom(
    unit: 'text' | 'json',
    offset: number,
    { signal }: SelectionReadOptions,
  ): { skip: number; lines: AsyncIterable<Uint8Array> } {
    const { rawBytes, idBytes, objects } = this.#loaded.tables.rows
    const found = this.#rowAt(offset, (row) =>
      unit === 'text' ? rawBytes[row] : rawBytes[row] - idBytes[row] - objects[row],
    )
    return {
      skip: offset - found.offset,
      lines: this.#watched(
        this.#reader.lines(this.#segments(found.row), { signal, buffers: this.#buffers }),
        (lines) => lines,
      ),
    }
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#buffers.end()
    if (this.#isLeased) this.#loaded.shared.release()
    this.#loaded.use.answers--
  }

  /**
   * A plan that leads to damage is not used again: a new one is made, and if the damage was the plan's own it is gone.
   */
  #watched<T, R>(items: AsyncIterable<T>, convert: (item: T) => R, completed?: () => void): AsyncIterableIterator<R> {
    return converted(() => items, convert, {
      completed,
      reasonOf: (error) => {
        if (error instanceof StowageError && error.code === 'corrupt_data') this.#loaded.use.isRetired = true
        return this.#catalog.reasonOf(error, this.#project)
      },
    })
  }

  /** The row that holds byte `offset` when row i has `bytesOf(i)` bytes, and the byte that the row starts with. */
  #rowAt(offset: number, bytesOf: (row: number) => number): { row: number; offset: number } {
    const rows = this.#loaded.tables.rows.sources.length
    let start = 0
    for (let row = 0; row < rows; row++) {
      const next = start + bytesOf(row)
      if (offset < next) return { row, offset: start }
      start = next
    }
    return { row: rows, offset: start }
  }

  async *#segments(firstRow: number): AsyncGenerator<readonly Segment[]> {
    const { rows } = this.#loaded.tables
    const sourceOf = this.#sources()
    for (let first = firstRow; first < rows.sources.length; first += ROWS_AT_ONCE) {
      const segments: Segment[] = []
      for (let row = first; row < Math.min(rows.sources.length, first + ROWS_AT_ONCE); row++) {
        const source = sourceOf(rows.sources[row])
        segments.push({
          source: source instanceof Promise ? await source : source,
          start: rows.starts[row],
          end: rows.starts[row] + rows.storedBytes[row],
          rawBytes: rows.rawBytes[row],
          rawCrc32: rows.rawCrc32[row],
          storedCrc32: rows.storedCrc32[row],
          objects: rows.objects[row],
          idBytes: rows.idBytes[row],
        })
      }
      yield segments
    }
  }

  /** The sources by their numbers, each looked up once. */
  #sources(): (number: number) => ByteSource | Promise<ByteSource> {
    const sources = new Map<number, ByteSource | Promise<ByteSource>>([[PATCH_SOURCE, this.#loaded.source]])
    return (number) => {
      const source = sources.get(number) ?? this.#packSource(this.#loaded.tables.packs[number])
      sources.set(number, source)
      return source
    }
  }

  #packSource({ sequence, packId, isInline }: PlanPack): ByteSource | Promise<ByteSource> {
    if (!isInline) return { blob: packBlobName(this.#project.projectId, packId) }
    return this.#catalog.packOfAnyLayout(this.#project, sequence).then(({ source }) => source)
  }
}
