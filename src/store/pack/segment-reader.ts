import { crc32 } from 'node:zlib'
import { inflateFragments } from '../../compression/inflate.ts'
import { crc32Combine } from '../../object/crc32.ts'
import type { Fragment } from '../../object/selection.ts'
import { BLOB_READ_BYTES_MAX, type BlobStore } from '../../storage/backend.ts'
import { corrupt } from './byte-codec.ts'
import { readAhead } from './read-ahead.ts'
import { cutLines, SEGMENT_RAW_BYTES_MAX, SEGMENT_STORED_BYTES_MAX, type ByteSource, type Segment } from './segment.ts'

/** Unneeded bytes between two segments that are read along rather than starting another read. */
const GAP_BYTES_MAX = 65_536
/** One answer's buffers: small reads hide behind each other, large ones two at a time. */
const READ_AHEAD = { count: 16, bytes: 2 * SEGMENT_STORED_BYTES_MAX, bytesOf: storedBytesOf }
const INFLATE_AHEAD = { count: 2 }

/** Neighbouring segments that one read brings. */
interface Span {
  readonly source: ByteSource
  readonly segments: readonly Segment[]
}

interface LoadedSpan {
  readonly segments: readonly Segment[]
  readonly stored: readonly Uint8Array[]
}

export interface SegmentPiece {
  readonly segment: Segment
  readonly fragment: Fragment
}

export type SegmentBatches = AsyncIterable<readonly Segment[]> | Iterable<readonly Segment[]>

/** Turns segments into stored bytes, fragments or lines. */
export class SegmentReader {
  readonly #blobs: BlobStore

  constructor(blobs: BlobStore) {
    this.#blobs = blobs
  }

  /** The stored bytes of segments without a cut, one buffer for each read. `verify` says whether their CRC is compared. */
  async *stored(batches: SegmentBatches, signal: AbortSignal, verify: (segment: Segment) => boolean): AsyncGenerator<Uint8Array> {
    for await (const { segments, stored } of this.#spans(batches, signal)) {
      for (const [i, segment] of segments.entries()) if (verify(segment)) checkStored(segment, stored[i])
      yield joined(stored)
    }
  }

  /** Whole segments as they are stored, cut ones as lines. */
  async *fragments(batches: SegmentBatches, signal: AbortSignal): AsyncGenerator<readonly Fragment[]> {
    for await (const pieces of this.pieces(batches, signal)) yield pieces.map(({ fragment }) => fragment)
  }

  /** The same, each with the segment that it came from. */
  async *pieces(batches: SegmentBatches, signal: AbortSignal): AsyncGenerator<readonly SegmentPiece[]> {
    for await (const { segments, stored } of this.#spans(batches, signal)) {
      yield await Promise.all(segments.map(async (segment, i) => ({ segment, fragment: await toFragment(segment, stored[i]) })))
    }
  }

  /** Whole lines in large buffers. */
  async *lines(batches: SegmentBatches, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const inflating = readAhead(this.#spans(batches, signal), INFLATE_AHEAD, (span) => inflated(span.segments, joined(span.stored)).then((raw) => ({ span, raw })))
    for await (const { span, raw } of inflating) {
      signal.throwIfAborted()
      yield* cutSegments(span.segments, raw)
    }
  }

  #spans(batches: SegmentBatches, signal: AbortSignal): AsyncGenerator<LoadedSpan> {
    return readAhead(spansOf(batches), READ_AHEAD, (span) => this.#load(span, signal))
  }

  async #load({ source, segments }: Span, signal: AbortSignal): Promise<LoadedSpan> {
    const start = segments[0].start
    const end = segments[segments.length - 1].end
    const bytes = await readSource(this.#blobs, source, start, end, signal)
    return { segments, stored: segments.map((segment) => bytes.subarray(segment.start - start, segment.end - start)) }
  }
}

/** Bytes of a source. Reads of more than the seam allows are put together from several. */
export async function readSource(blobs: BlobStore, source: ByteSource, start: number, end: number, signal?: AbortSignal): Promise<Uint8Array> {
  signal?.throwIfAborted()
  if ('bytes' in source) {
    if (end > source.bytes.length) throw corrupt('a pack inside its record is cut short')
    return source.bytes.subarray(start, end)
  }
  if (end - start <= BLOB_READ_BYTES_MAX) return blobs.read(source.blob, start, end, { signal })
  const whole = new Uint8Array(end - start)
  for (let at = start; at < end; at += BLOB_READ_BYTES_MAX) {
    whole.set(await blobs.read(source.blob, at, Math.min(end, at + BLOB_READ_BYTES_MAX), { signal }), at - start)
  }
  return whole
}

/** Segments that lie near each other and suit one read, together. */
async function* spansOf(batches: SegmentBatches): AsyncGenerator<Span> {
  for await (const batch of batches) {
    let group: Segment[] = []
    let rawBytes = 0
    for (const segment of batch) {
      const last = group.at(-1)
      if (last !== undefined && !(fits(group[0], last, segment) && rawBytes + segment.rawBytes <= SEGMENT_RAW_BYTES_MAX)) {
        yield { source: last.source, segments: group }
        group = []
        rawBytes = 0
      }
      group.push(segment)
      rawBytes += segment.rawBytes
    }
    if (group.length > 0) yield { source: group[0].source, segments: group }
  }
}

function storedBytesOf({ segments }: Span): number {
  return segments[segments.length - 1].end - segments[0].start
}

function fits(first: Segment, last: Segment, next: Segment): boolean {
  const gap = next.start - last.end
  return sameSource(next.source, last.source) && gap >= 0 && gap <= GAP_BYTES_MAX && next.end - first.start <= SEGMENT_STORED_BYTES_MAX
}

function sameSource(a: ByteSource, b: ByteSource): boolean {
  return a === b || ('blob' in a && 'blob' in b && a.blob === b.blob)
}

/** One buffer for many; no copy where they lie side by side already. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  const first = parts[0]
  let end = first.byteOffset
  for (const part of parts) {
    if (part.byteOffset !== end) return Buffer.concat(parts)
    end += part.byteLength
  }
  return new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset)
}

function checkStored(segment: Segment, stored: Uint8Array): void {
  if (crc32(stored) !== segment.storedCrc32) throw corrupt(`stored blocks at bytes ${segment.start} to ${segment.end} of ${nameOf(segment)} do not match their CRC-32`)
}

async function toFragment(segment: Segment, stored: Uint8Array): Promise<Fragment> {
  if (segment.cut !== undefined) return { lines: cutLines(await inflated([segment], stored), segment.cut) }
  checkStored(segment, stored)
  return { deflated: stored, rawBytes: segment.rawBytes, crc32: segment.rawCrc32 }
}

async function inflated(segments: readonly Segment[], stored: Uint8Array): Promise<Uint8Array> {
  let rawBytes = 0
  let rawCrc32 = 0
  for (const segment of segments) {
    rawBytes += segment.rawBytes
    rawCrc32 = crc32Combine(rawCrc32, segment.rawCrc32, segment.rawBytes)
  }
  const raw = await inflateFragments(stored, rawBytes).catch((cause: unknown) => {
    throw corrupt(`blocks at byte ${segments[0].start} of ${nameOf(segments[0])} cannot be inflated`, cause)
  })
  if (crc32(raw) !== rawCrc32) throw corrupt(`blocks at byte ${segments[0].start} of ${nameOf(segments[0])} do not match their CRC-32`)
  return raw
}

function* cutSegments(segments: readonly Segment[], raw: Uint8Array): Generator<Uint8Array> {
  if (segments.every((segment) => segment.cut === undefined)) {
    yield raw
    return
  }
  let to = 0
  let from = 0
  for (const segment of segments) {
    const part = raw.subarray(from, from + segment.rawBytes)
    const kept = segment.cut === undefined ? part : cutLines(part, segment.cut)
    if (from !== to || kept.length !== segment.rawBytes) raw.set(kept, to)
    to += kept.length
    from += segment.rawBytes
  }
  if (to > 0) yield raw.subarray(0, to)
}

function nameOf(segment: Segment): string {
  return 'blob' in segment.source ? `pack ${segment.source.blob.split('/').at(-1)}` : 'a pack inside its record'
}
