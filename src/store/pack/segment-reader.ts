import type { AnswerBuffers, AnswerMemory } from '../../memory/answer-memory.ts'
import type { Environment } from '../../environment.ts'
import { INFLATED_SPARE_BYTES } from '../../compression/inflate.ts'
import { storedFragment } from '../../compression/stored-fragment.ts'
import type { Fragment } from '../../object/selection.ts'
import { BLOB_READ_BYTES_MAX, type BlobStore } from '../../storage/backend.ts'
import { bytesOf, joined, movedTogether } from '../bytes/joined.ts'
import { converted } from '../../async/relay.ts'
import { readAhead, type ReadAheadBounds } from '../bytes/read-ahead.ts'
import { inflateDeltaBlock, isDeltaBlock } from './delta-block.ts'
import { readSource } from './read-source.ts'
import { beginningLines, cutSegments, inflated, INFLATED_HERE_BYTES_MAX } from './inflated-segments.ts'
import { piecesOf, type SegmentPiece } from './segment-pieces.ts'
import { type ByteSource, isPlaced, type Segment } from './segment.ts'
import { rawBytesOf, type SegmentBatches, type Span, spansOf, storedBytesOf } from './spans.ts'

/** What is inflated at once, if there is room. */
const SPAN_RAW_BYTES_MAX = 1_048_576
/** Small reads hide behind each other. */
const READS_AHEAD = 16
const INFLATED_AHEAD = 2

/** What one read brings: bytes `start` up to `end` of a source. */
export interface StoredRun {
  /** Looked up when the run is read: a promise that fails while the run waits for room would end the process. */
  readonly source: () => ByteSource | Promise<ByteSource>
  readonly start: number
  readonly end: number
  /** Those that are wanted, in their order. Absent: all. */
  readonly parts?: readonly { readonly start: number; readonly end: number }[] | undefined
}

export interface LoadedRun<R extends StoredRun> {
  readonly run: R
  readonly source: ByteSource
  readonly bytes: Uint8Array
  /** What counts as held. */
  readonly readBytes: number
}

interface LoadedSpan {
  readonly segments: readonly Segment[]
  readonly stored: readonly Uint8Array[]
  /** All that was read, `stored` included. Its length counts as held. */
  readonly whole: Uint8Array
}

interface InflatedSpan {
  readonly lines: Uint8Array
  /** What counts as held. */
  readonly rawBytes: number
}

/** For whom is read. */
export interface Reading {
  readonly signal: AbortSignal
  readonly buffers: AnswerBuffers
}

/** Turns segments into stored bytes, fragments or lines. */
export class SegmentReader {
  /** The memory that all readers hold together. */
  readonly memory: AnswerMemory
  readonly environment: Environment
  readonly #blobs: BlobStore

  constructor(blobs: BlobStore, memory: AnswerMemory, environment: Environment) {
    this.environment = environment
    this.#blobs = blobs
    this.memory = memory
  }

  /**
   * The wanted bytes of runs, one buffer for each read. `check` sees each of them first, and throws if they are not what
   * they should be. Whoever takes one passes its `readBytes` on to the client. A caller that knows that nobody needs a
   * part of the bytes any more may give it back to `memory.bufferPool`.
   */
  runs<R extends StoredRun>(
    runs: Iterable<R>,
    reading: Reading,
    check: (loaded: LoadedRun<R>) => void,
  ): AsyncIterableIterator<LoadedRun<R>> {
    return readAhead(runs, this.#readBounds(reading.buffers, readBytesOf), async (run) => {
      const loaded = await this.#loadRun(run, reading)
      check(loaded)
      return loaded
    })
  }

  /**
   * Whole segments as they are stored, cut ones as lines. A caller that knows that nobody needs the bytes of a fragment
   * any more may give them back to `memory.bufferPool`.
   */
  async *fragments(batches: SegmentBatches, reading: Reading): AsyncGenerator<readonly Fragment[]> {
    for await (const pieces of this.pieces(batches, reading)) yield pieces.map(({ fragment }) => fragment)
  }

  /** The same, each with its segment: the first of them for neighbours that are cut. */
  async *pieces(batches: SegmentBatches, reading: Reading): AsyncGenerator<readonly SegmentPiece[]> {
    const { bufferPool } = this.memory
    for await (const { segments, stored, whole } of this.#spans(batches, reading)) {
      const pieces = await piecesOf({ segments, stored }, this.environment)
      const passed = pieces.map(({ fragment }) => ('lines' in fragment ? fragment.lines : fragment.deflated))
      const bytes = bytesOf(passed)
      reading.buffers.hold(bytes - whole.length)
      reading.buffers.passOn(bytes)
      const storedBytes = bytesOf(passed.filter(({ buffer }) => buffer === whole.buffer))
      bufferPool.giveBack(whole.subarray(storedBytes))
      yield pieces
    }
  }

  /**
   * Whole lines in large buffers. A caller that knows that nobody needs a part of them any more may give it back to
   * `memory.bufferPool`.
   */
  lines(batches: SegmentBatches, reading: Reading): AsyncIterableIterator<Uint8Array> {
    const { signal, buffers } = reading
    const bounds = {
      count: INFLATED_AHEAD,
      bytes: () => INFLATED_AHEAD * Math.min(SPAN_RAW_BYTES_MAX, buffers.aheadBytes),
      bytesOf: rawBytesOf,
    }
    const inflating = (): AsyncIterable<InflatedSpan> =>
      readAhead(this.#spans(batches, reading), bounds, async (span) => {
        const rawBytes = rawBytesOf(span)
        buffers.hold(rawBytes)
        const lines = await this.#linesOf(span)
        buffers.free(span.whole.length)
        this.memory.bufferPool.giveBack(span.whole)
        return { lines, rawBytes }
      })
    return converted(inflating, ({ lines, rawBytes }) => {
      signal.throwIfAborted()
      buffers.passOn(rawBytes)
      return lines.length === 0 ? undefined : lines
    })
  }

  async #linesOf(span: LoadedSpan): Promise<Uint8Array> {
    const { segments, stored } = span
    if (segments.every(isPlaced) && rawBytesOf(span) <= INFLATED_HERE_BYTES_MAX)
      return Buffer.concat(segments.map((segment, i) => beginningLines(segment, stored[i])))
    const raw = await this.#inflatedInto(span)
    const lines = cutSegments(segments, raw)
    this.memory.bufferPool.giveBack(raw.subarray(lines.length))
    return lines
  }

  async #inflatedInto({ segments, stored }: LoadedSpan): Promise<Uint8Array> {
    const { bufferPool } = this.memory
    const rawBytes = rawBytesOf({ segments })
    const into = bufferPool.take(rawBytes + INFLATED_SPARE_BYTES)
    const raw = await inflated(segments, joined(stored), { environment: this.environment, into })
    if (into !== undefined) bufferPool.giveBack(raw.buffer === into.buffer ? into.subarray(rawBytes) : into)
    return raw
  }

  /** The most bytes of one read, if there is room: what suits the medium. */
  get readBytesMax(): number {
    return Math.min(this.#blobs.readBytesPreferred, BLOB_READ_BYTES_MAX)
  }

  #readBounds<T>(buffers: AnswerBuffers, bytesOfItem: (item: T) => number): ReadAheadBounds<T> {
    const { readBytesMax } = this
    return {
      count: READS_AHEAD,
      bytes: () => buffers.readsAhead * Math.min(readBytesMax, buffers.aheadBytes),
      bytesOf: bytesOfItem,
    }
  }

  #spans(batches: SegmentBatches, reading: Reading): AsyncIterableIterator<LoadedSpan> {
    const { buffers } = reading
    const spans = spansOf(batches, buffers, { storedBytesMax: this.readBytesMax, rawBytesMax: SPAN_RAW_BYTES_MAX })
    return readAhead(spans, this.#readBounds(buffers, storedBytesOf), (span) => this.#load(span, reading))
  }

  async #loadRun<R extends StoredRun>(run: R, { signal, buffers }: Reading): Promise<LoadedRun<R>> {
    const readBytes = readBytesOf(run)
    // Counted before it is read: otherwise many concurrent readers would all find that there is room.
    buffers.hold(readBytes)
    try {
      const source = await run.source()
      const { whole, isLent } = await this.#read(source, run.start, run.end, signal)
      if (run.parts === undefined) return { run, source, bytes: whole, readBytes }
      const parts = run.parts.map(({ start, end }) => whole.subarray(start - run.start, end - run.start))
      const bytes = joined(isLent ? movedTogether(whole, parts) : parts)
      if (isLent) this.memory.bufferPool.giveBack(whole.subarray(bytes.length))
      return { run, source, bytes, readBytes }
    } catch (error) {
      buffers.free(readBytes)
      throw error
    }
  }

  async #load({ source, segments }: Span, { signal, buffers }: Reading): Promise<LoadedSpan> {
    const start = segments[0].start
    const end = segments[segments.length - 1].end
    buffers.hold(end - start)
    try {
      const { whole, isLent } = await this.#read(source, start, end, signal)
      const stored = segments.map((segment) => whole.subarray(segment.start - start, segment.end - start))
      if (segments.some((segment, i) => isDelta(segment, stored[i]))) {
        const loaded = await this.#withoutDeltas({ segments, stored, whole }, { signal, buffers })
        if (isLent) this.memory.bufferPool.giveBack(whole)
        return loaded
      }
      return { segments, stored: isLent ? movedTogether(whole, stored) : stored, whole }
    } catch (error) {
      buffers.free(end - start)
      throw error
    }
  }

  /**
   * Reads into memory that is lent, unless the source brings its own. Lent memory may be changed, which saves another
   * buffer for what is joined.
   */
  async #read(
    source: ByteSource,
    start: number,
    end: number,
    signal: AbortSignal,
  ): Promise<{ readonly whole: Uint8Array; readonly isLent: boolean }> {
    const { bufferPool } = this.memory
    const into = 'blob' in source ? bufferPool.take(end - start) : undefined
    const whole = await readSource(this.#blobs, source, start, end, { signal, into })
    const isLent = into !== undefined && into.buffer === whole.buffer
    if (into !== undefined && !isLent) bufferPool.giveBack(into)
    return { whole, isLent }
  }

  /** The same with a fragment in the place of each delta block. */
  async #withoutDeltas({ segments, stored, whole }: LoadedSpan, { signal, buffers }: Reading): Promise<LoadedSpan> {
    const fragments: Uint8Array[] = []
    for (const [i, segment] of segments.entries())
      fragments.push(isDelta(segment, stored[i]) ? await this.#fragmentOf(segment, stored[i], signal) : stored[i])
    const together = Buffer.concat(fragments)
    buffers.hold(together.length - whole.length)
    let end = 0
    return { segments, whole: together, stored: fragments.map(({ length }) => together.subarray(end, (end += length))) }
  }

  async #fragmentOf(segment: Segment, stored: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const read = (start: number, end: number): Promise<Uint8Array> =>
      readSource(this.#blobs, segment.source, start, end, { signal })
    return storedFragment(await inflateDeltaBlock(stored, segment.rawBytes, { read, environment: this.environment }))
  }
}

function readBytesOf({ start, end }: StoredRun): number {
  return end - start
}

/** A segment of whole blocks never is. */
function isDelta({ cut, placed }: Segment, stored: Uint8Array): boolean {
  return (cut !== undefined || placed !== undefined) && isDeltaBlock(stored)
}
