import { crc32 } from 'node:zlib'
import { crc32Combine } from '../../compression/crc32-combine.ts'
import {
  inflateBeginning,
  inflateFragments,
  inflateFragmentsSync,
  type InflateOptions,
} from '../../compression/inflate.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { placedEnd, takeLines } from './placed-lines.ts'
import { cutLines, nameOf, type PlacedSegment, type Segment } from './segment.ts'

/** Blocks of this size together are inflated on the calling thread. */
export const INFLATED_HERE_BYTES_MAX = 65_536
/** For the beginning of a block, until its lines are copied. */
const SCRATCH = Buffer.allocUnsafeSlow(INFLATED_HERE_BYTES_MAX)

/**
 * The bytes of segments, from their stored bytes. Throws `corrupt_data` if they cannot be inflated or do not match their
 * checksum.
 */
export async function inflated(
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
  const raw = await inflateFragments(stored, rawBytes, options).catch((cause: unknown) => {
    throw notInflated(segments[0], cause)
  })
  if (segments[0].placed === undefined && crc32(raw) !== rawCrc32)
    throw corrupt(`blocks at byte ${segments[0].start} of ${nameOf(segments[0])} do not match their CRC-32`)
  return raw
}

/** The bytes of one block of at most `INFLATED_HERE_BYTES_MAX` bytes. Throws `corrupt_data` if it cannot be inflated. */
export function inflatedHere(segment: PlacedSegment, stored: Uint8Array): Uint8Array {
  try {
    return inflateFragmentsSync(stored, segment.rawBytes)
  } catch (cause) {
    throw notInflated(segment, cause)
  }
}

/** The lines of these segments, in the same memory. */
export function cutSegments(segments: readonly Segment[], raw: Uint8Array): Uint8Array {
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

/**
 * The wanted lines of one block of at most `INFLATED_HERE_BYTES_MAX` bytes, copied. Nothing is inflated behind the last
 * of them. Throws `corrupt_data` for any other bytes.
 */
export function beginningLines(segment: PlacedSegment, stored: Uint8Array): Uint8Array {
  try {
    const raw = SCRATCH.subarray(0, Math.min(segment.rawBytes, placedEnd(segment.placed)))
    inflateBeginning(raw, stored, segment.rawBytes)
    return Buffer.from(takeLines(raw, segment.placed))
  } catch (cause) {
    throw damaged(segment, cause)
  }
}

/** The lines of an inflated segment that belong to the answer. */
export function keptLines(segment: Segment, raw: Uint8Array): Uint8Array {
  if (segment.placed === undefined) return segment.cut === undefined ? raw : cutLines(raw, segment.cut)
  try {
    return takeLines(raw, segment.placed)
  } catch (cause) {
    throw damaged(segment, cause)
  }
}

function notInflated(first: Segment, cause: unknown): Error {
  return corrupt(`blocks at byte ${first.start} of ${nameOf(first)} cannot be inflated`, cause)
}

function damaged(segment: Segment, cause: unknown): Error {
  return corrupt(`the block at byte ${segment.start} of ${nameOf(segment)} is damaged`, cause)
}
