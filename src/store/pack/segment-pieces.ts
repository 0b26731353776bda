import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import type { Fragment } from '../../object/selection.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { joined } from '../bytes/joined.ts'
import {
  beginningLines,
  cutSegments,
  inflated,
  inflatedHere,
  INFLATED_HERE_BYTES_MAX,
  keptLines,
} from './inflated-segments.ts'
import { placedBytes } from './placed-lines.ts'
import { isPlaced, nameOf, type PlacedSegment, type Segment } from './segment.ts'
import { rawBytesOf } from './spans.ts'

/** Segments with their stored bytes. */
interface Run {
  readonly segments: readonly Segment[]
  readonly stored: readonly Uint8Array[]
}

export interface SegmentPiece {
  readonly segment: Segment
  readonly fragment: Fragment
}

/**
 * Whole segments as they are stored, the others as lines, each with its segment: the first of them for neighbours that are
 * cut. Throws `corrupt_data` for bytes that are not what they should be.
 */
export async function piecesOf(all: Run, environment: Environment): Promise<readonly SegmentPiece[]> {
  const runs = runsOfOneKind(all)
  if (runs.length === 1) return toPieces(runs[0], environment)
  return (await Promise.all(runs.map(async (run) => toPieces(run, environment)))).flat()
}

function checkStored(segment: Segment, stored: Uint8Array): void {
  if (crc32(stored) !== segment.storedCrc32)
    throw corrupt(
      `stored blocks at bytes ${segment.start} to ${segment.end} of ${nameOf(segment)} do not match their CRC-32`,
    )
}

/** Neighbours of a span that are all whole, all cut or all placed, with their stored bytes. */
function runsOfOneKind({ segments, stored }: Run): readonly Run[] {
  const runs: { segments: Segment[]; stored: Uint8Array[] }[] = []
  for (const [i, segment] of segments.entries()) {
    const run = runs.at(-1)
    if (run === undefined || kindOf(run.segments[0]) !== kindOf(segment))
      runs.push({ segments: [segment], stored: [stored[i]] })
    else {
      run.segments.push(segment)
      run.stored.push(stored[i])
    }
  }
  return runs
}

function kindOf({ cut, placed }: Segment): 'whole' | 'cut' | 'placed' {
  if (placed !== undefined) return 'placed'
  return cut === undefined ? 'whole' : 'cut'
}

/** Most pieces are made at once, without a promise. Cut segments are inflated together: one trip to the thread pool. */
function toPieces(
  { segments, stored }: Run,
  environment: Environment,
): readonly SegmentPiece[] | Promise<readonly SegmentPiece[]> {
  if (segments.every(isPlaced)) {
    if (rawBytesOf({ segments }) > INFLATED_HERE_BYTES_MAX) return placedPieces(segments, stored, environment)
    return segments.map((segment, i) => placedPiece(segment, stored[i]))
  }
  if (segments[0].cut !== undefined) return cutPieces(segments, stored, environment)
  return segments.map((segment, i) => {
    checkStored(segment, stored[i])
    return { segment, fragment: { deflated: stored[i], rawBytes: segment.rawBytes, crc32: segment.rawCrc32 } }
  })
}

async function cutPieces(
  segments: readonly Segment[],
  stored: readonly Uint8Array[],
  environment: Environment,
): Promise<readonly SegmentPiece[]> {
  const raw = await inflated(segments, joined(stored), { environment })
  const lines = cutSegments(segments, raw)
  return lines.length === 0 ? [] : [{ segment: segments[0], fragment: { lines } }]
}

async function placedPieces(
  segments: readonly PlacedSegment[],
  stored: readonly Uint8Array[],
  environment: Environment,
): Promise<readonly SegmentPiece[]> {
  const raw = await inflated(segments, joined(stored), { environment })
  let from = 0
  return segments.map((segment, i) => {
    const lines = keptLines(segment, raw.subarray(from, (from += segment.rawBytes)))
    return isPassedOn(segment, stored[i]) ? passedOn(segment, stored[i], lines) : { segment, fragment: { lines } }
  })
}

/** Of a small block, on the calling thread. */
function placedPiece(segment: PlacedSegment, stored: Uint8Array): SegmentPiece {
  if (!isPassedOn(segment, stored)) return { segment, fragment: { lines: beginningLines(segment, stored) } }
  return passedOn(segment, stored, keptLines(segment, inflatedHere(segment, stored)))
}

/** A block all of whose lines are wanted, as it is stored. */
function passedOn(segment: PlacedSegment, stored: Uint8Array, lines: Uint8Array): SegmentPiece {
  return { segment, fragment: { deflated: stored, rawBytes: segment.rawBytes, crc32: crc32(lines) } }
}

/** What was a delta block is not compressed: whoever sends it compresses it. */
function isPassedOn({ placed, rawBytes }: PlacedSegment, stored: Uint8Array): boolean {
  return stored.length < rawBytes && placedBytes(placed) === rawBytes
}
