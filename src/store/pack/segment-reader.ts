import { crc32 } from 'node:zlib'
import type { AnswerBuffers, AnswerMemory } from '../../memory/answer-memory.ts'
import type { BufferPool } from '../../memory/buffer-pool.ts'
import type { Environment } from '../../environment.ts'
import {
  INFLATED_SPARE_BYTES,
  inflateFragments,
  inflateFragmentsSync,
  type InflateOptions,
} from '../../compression/inflate.ts'
import { crc32Combine } from '../../compression/crc32-combine.ts'
import { storedFragment } from '../../compression/stored-fragment.ts'
import type { Fragment } from '../../object/selection.ts'
import { BLOB_READ_BYTES_MAX, type BlobStore } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { bytesOf, joined, movedTogether } from '../bytes/joined.ts'
import { converted } from '../../async/relay.ts'
import { readAhead } from '../bytes/read-ahead.ts'
import { inflateDeltaBlock, isDeltaBlock } from './delta-block.ts'
import { readSource } from './read-source.ts'
import { placedBytes, takeLines } from './placed-lines.ts'
import { cutLines, nameOf, type Segment } from './segment.ts'
import { rawBytesOf, type SegmentBatches, type Span, spansOf, storedBytesOf } from './spans.ts'

/** What is inflated at once, if there is room. */
const SPAN_RAW_BYTES_MAX = 1_048_576
/** Small reads hide behind each other. */
const READS_AHEAD = 16
const INFLATED_AHEAD = 2
const INFLATED_HERE_BYTES_MAX = 65_536

interface LoadedSpan {
  readonly segments: readonly Segment[]
  readonly stored: readonly Uint8Array[]
  /** All that was read, `stored` included. Its length counts as held. */
  readonly whole: Uint8Array
}

interface InflatedSpan {
  readonly segments: readonly Segment[]
  readonly raw: Uint8Array
}

/** Of a span, as far as neighbours of one kind are concerned. */
type Run = Pick<LoadedSpan, 'segments' | 'stored'>

export interface SegmentPiece {
  readonly segment: Segment
  readonly fragment: Fragment
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
   * The stored bytes of segments without a cut, one buffer for each read. `verify` decides whether their CRC is
   * compared. A caller that knows that nobody needs a part of them any more may give it back to
   * `memory.bufferPool`.
   */
  stored(
    batches: SegmentBatches,
    reading: Reading,
    verify: (segment: Segment) => boolean,
  ): AsyncIterableIterator<Uint8Array> {
    const { bufferPool } = this.memory
    const spans = (): AsyncIterable<LoadedSpan> => this.#spans(batches, reading, { rawBytesMax: Infinity, bufferPool })
    return converted(spans, ({ segments, stored, whole }) => {
      for (const [i, segment] of segments.entries()) if (verify(segment)) checkStored(segment, stored[i])
      reading.buffers.passOn(whole.length)
      const bytes = joined(stored)
      bufferPool.giveBack(bytes.buffer === whole.buffer ? whole.subarray(bytes.length) : whole)
      return bytes
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
    for await (const { segments, stored, whole } of this.#spans(batches, reading, { bufferPool })) {
      const pieces = (
        await Promise.all(runsOfOneKind(segments, stored).map((run) => toPieces(run, this.environment)))
      ).flat()
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
    const { bufferPool } = this.memory
    const inflating = (): AsyncIterable<InflatedSpan> =>
      readAhead(this.#spans(batches, reading, { bufferPool }), bounds, async (span) => {
        buffers.hold(rawBytesOf(span))
        const raw = await this.#inflatedInto(span)
        buffers.free(span.whole.length)
        bufferPool.giveBack(span.whole)
        return { segments: span.segments, raw }
      })
    return converted(inflating, ({ segments, raw }) => {
      signal.throwIfAborted()
      buffers.passOn(raw.length)
      const lines = cutSegments(segments, raw)
      bufferPool.giveBack(raw.subarray(lines.length))
      return lines.length === 0 ? undefined : lines
    })
  }

  async #inflatedInto({ segments, stored }: LoadedSpan): Promise<Uint8Array> {
    const { bufferPool } = this.memory
    const rawBytes = rawBytesOf({ segments })
    const into = bufferPool.take(rawBytes + INFLATED_SPARE_BYTES)
    const raw = await inflated(segments, joined(stored), { environment: this.environment, into })
    if (into !== undefined) bufferPool.giveBack(raw.buffer === into.buffer ? into.subarray(rawBytes) : into)
    return raw
  }

  #spans(
    batches: SegmentBatches,
    { signal, buffers }: Reading,
    { rawBytesMax = SPAN_RAW_BYTES_MAX, bufferPool }: SpanOptions = {},
  ): AsyncIterableIterator<LoadedSpan> {
    const storedBytesMax = Math.min(this.#blobs.readBytesPreferred, BLOB_READ_BYTES_MAX)
    const bounds = {
      count: READS_AHEAD,
      bytes: () => buffers.readsAhead * Math.min(storedBytesMax, buffers.aheadBytes),
      bytesOf: storedBytesOf,
    }
    const spans = spansOf(batches, buffers, { storedBytesMax, rawBytesMax })
    return readAhead(spans, bounds, (span) => this.#load(span, { signal, buffers }, bufferPool))
  }

  async #load(
    { source, segments }: Span,
    { signal, buffers }: Reading,
    bufferPool: BufferPool | undefined,
  ): Promise<LoadedSpan> {
    const start = segments[0].start
    const end = segments[segments.length - 1].end
    // Counted before it is read: otherwise many concurrent readers would all find that there is room.
    buffers.hold(end - start)
    try {
      const into = 'blob' in source ? bufferPool?.take(end - start) : undefined
      const whole = await readSource(this.#blobs, source, start, end, { signal, into })
      const stored = segments.map((segment) => whole.subarray(segment.start - start, segment.end - start))
      if (segments.some((segment, i) => isDelta(segment, stored[i]))) {
        const loaded = await this.#withoutDeltas({ segments, stored, whole }, { signal, buffers })
        if (into !== undefined) bufferPool?.giveBack(into.buffer === whole.buffer ? whole : into)
        return loaded
      }
      if (into === undefined) return { segments, stored, whole }
      // Memory that is lent may be changed, which saves another buffer for what is joined.
      if (into.buffer === whole.buffer) return { segments, stored: movedTogether(whole, stored), whole }
      bufferPool?.giveBack(into)
      return { segments, stored, whole }
    } catch (error) {
      buffers.free(end - start)
      throw error
    }
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

interface SpanOptions {
  /** Limits the inflated bytes of one span. */
  readonly rawBytesMax?: number
  /** Lends the memory of reads, if it gets it back. */
  readonly bufferPool?: BufferPool
}

/** A segment of whole blocks never is. */
function isDelta({ cut, placed }: Segment, stored: Uint8Array): boolean {
  return (cut !== undefined || placed !== undefined) && isDeltaBlock(stored)
}

function checkStored(segment: Segment, stored: Uint8Array): void {
  if (crc32(stored) !== segment.storedCrc32)
    throw corrupt(
      `stored blocks at bytes ${segment.start} to ${segment.end} of ${nameOf(segment)} do not match their CRC-32`,
    )
}

/** Neighbours of a span that are all whole or all cut, with their stored bytes. */
function runsOfOneKind(segments: readonly Segment[], stored: readonly Uint8Array[]): Run[] {
  const runs: { segments: Segment[]; stored: Uint8Array[] }[] = []
  for (const [i, segment] of segments.entries()) {
    const run = runs.at(-1)
    if (run === undefined || (run.segments[0].cut === undefined) !== (segment.cut === undefined))
      runs.push({ segments: [segment], stored: [stored[i]] })
    else {
      run.segments.push(segment)
      run.stored.push(stored[i])
    }
  }
  return runs
}

/** Cut segments are inflated together: one trip to the thread pool for all of them. */
async function toPieces({ segments, stored }: Run, environment: Environment): Promise<readonly SegmentPiece[]> {
  const [first] = segments
  if (first.placed !== undefined) return placedPieces(segments, stored, environment)
  if (first.cut !== undefined) {
    const raw = await inflated(segments, joined(stored), { environment })
    const lines = cutSegments(segments, raw)
    return lines.length === 0 ? [] : [{ segment: first, fragment: { lines } }]
  }
  return segments.map((segment, i) => {
    checkStored(segment, stored[i])
    return { segment, fragment: { deflated: stored[i], rawBytes: segment.rawBytes, crc32: segment.rawCrc32 } }
  })
}

/** Blocks all of whose lines are wanted pass as they are stored. */
async function placedPieces(
  segments: readonly Segment[],
  stored: readonly Uint8Array[],
  environment: Environment,
): Promise<readonly SegmentPiece[]> {
  const raw = await inflated(segments, joined(stored), { environment })
  let from = 0
  return segments.map((segment, i) => {
    const part = raw.subarray(from, (from += segment.rawBytes))
    // What was a delta block is not compressed: whoever sends it compresses it.
    const isCompressed = stored[i].length < segment.rawBytes
    const isWhole = isCompressed && segment.placed !== undefined && placedBytes(segment.placed) === segment.rawBytes
    const lines = keptLines(segment, part)
    if (!isWhole) return { segment, fragment: { lines } }
    return { segment, fragment: { deflated: stored[i], rawBytes: segment.rawBytes, crc32: crc32(lines) } }
  })
}

async function inflated(
  segments: readonly Segment[],
  stored: Uint8Array,
  options: InflateOptions,
): Promise<Uint8Array> {
  let rawBytes = 0
  let rawCrc32 = 0
  for (const segment of segments) {
    rawBytes += segment.rawBytes
    rawCrc32 = crc32Combine(rawCrc32, segment.rawCrc32, segment.rawBytes)
  }
  const isPlaced = segments[0].placed !== undefined
  const inflating =
    isPlaced && rawBytes <= INFLATED_HERE_BYTES_MAX
      ? inflateHere(stored, rawBytes)
      : inflateFragments(stored, rawBytes, options)
  const raw = await inflating.catch((cause: unknown) => {
    throw corrupt(`blocks at byte ${segments[0].start} of ${nameOf(segments[0])} cannot be inflated`, cause)
  })
  if (!isPlaced && crc32(raw) !== rawCrc32)
    throw corrupt(`blocks at byte ${segments[0].start} of ${nameOf(segments[0])} do not match their CRC-32`)
  return raw
}

/** A few blocks take less time than the trip to the thread pool. */
async function inflateHere(stored: Uint8Array, rawBytes: number): Promise<Uint8Array> {
  return inflateFragmentsSync(stored, rawBytes)
}

/** The lines of these segments, in the same memory. */
function cutSegments(segments: readonly Segment[], raw: Uint8Array): Uint8Array {
  if (segments.every(({ cut, placed }) => cut === undefined && placed === undefined)) return raw
  let to = 0
  let from = 0
  for (const segment of segments) {
    const part = raw.subarray(from, from + segment.rawBytes)
    const kept = keptLines(segment, part)
    if (from !== to || kept.length !== segment.rawBytes) raw.set(kept, to)
    to += kept.length
    from += segment.rawBytes
  }
  return raw.subarray(0, to)
}

/** The lines of an inflated segment that belong to the answer. */
function keptLines(segment: Segment, raw: Uint8Array): Uint8Array {
  if (segment.placed === undefined) return segment.cut === undefined ? raw : cutLines(raw, segment.cut)
  try {
    return takeLines(raw, segment.placed)
  } catch (cause) {
    throw corrupt(`the block at byte ${segment.start} of ${nameOf(segment)} is damaged`, cause)
  }
}
