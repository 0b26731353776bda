import type { AnswerBuffers } from '../../memory/answer-memory.ts'
import type { ByteSource, Segment } from './segment.ts'

/**
 * Unneeded bytes between two segments that are read along rather than starting another read, as a part of the read that
 * suits the medium: 64 KiB on disk.
 */
const GAP_SHARE = 16

/** The largest gap that is read along. */
export function gapBytesMax(storedBytesMax: number): number {
  return storedBytesMax / GAP_SHARE
}

export type SegmentBatches = AsyncIterable<readonly Segment[]> | Iterable<readonly Segment[]>

/** Neighbouring segments that one read brings. */
export interface Span {
  readonly source: ByteSource
  readonly segments: readonly Segment[]
}

export interface SpanBounds {
  readonly storedBytesMax: number
  readonly rawBytesMax: number
}

/** Segments that lie near each other and suit one read, together, whatever batches they come in. */
export async function* spansOf(
  batches: SegmentBatches,
  buffers: AnswerBuffers,
  { storedBytesMax, rawBytesMax }: SpanBounds,
): AsyncGenerator<Span> {
  const gapMax = gapBytesMax(storedBytesMax)
  let group: Segment[] = []
  let rawBytes = 0
  for await (const batch of batches) {
    for (const segment of batch) {
      const last = group.at(-1)
      const { roomBytes } = buffers
      const isFull = rawBytes + segment.rawBytes > Math.min(rawBytesMax, roomBytes)
      const isOver = (end: number): boolean => end - group[0].start > Math.min(storedBytesMax, roomBytes)
      if (last !== undefined && (isFull || !isNear(last, segment, gapMax) || isOver(segment.end))) {
        yield { source: last.source, segments: group }
        group = []
        rawBytes = 0
      }
      group.push(segment)
      rawBytes += segment.rawBytes
    }
  }
  if (group.length > 0) yield { source: group[0].source, segments: group }
}

export function storedBytesOf({ segments }: Span): number {
  return segments[segments.length - 1].end - segments[0].start
}

export function rawBytesOf({ segments }: Pick<Span, 'segments'>): number {
  return segments.reduce((sum, { rawBytes }) => sum + rawBytes, 0)
}

function isNear(last: Segment, next: Segment, gapMax: number): boolean {
  const gap = next.start - last.end
  return sameSource(next.source, last.source) && gap >= 0 && gap <= gapMax
}

function sameSource(a: ByteSource, b: ByteSource): boolean {
  return a === b || ('blob' in a && 'blob' in b && a.blob === b.blob)
}
