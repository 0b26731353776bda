import { crc32Combine } from '../../compression/crc32-combine.ts'
import type { Bitmap } from '../bytes/bitmap.ts'
import { type BlockDirectory, CODEC_DELTA, entryBytes, type PackTables } from './pack-format.ts'
import type { PlacedLines } from './placed-lines.ts'

/** The source of stored bytes: a blob, or memory (a pack that lies inside its record). */
export type ByteSource = { readonly blob: string } | { readonly bytes: Uint8Array }

/** Which lines of inflated blocks to keep. */
export interface LineCut {
  /** Of each line of the blocks. */
  readonly lineBytes: Uint32Array
  readonly firstOrdinal: number
  readonly wanted: Bitmap
}

/**
 * A run of blocks that lie one after the other: bytes `start` up to `end` of their source, one DEFLATE fragment, or one
 * delta block.
 * Without `cut` every line of it is sent; with it only some, and `objects` and `idBytes` count those alone.
 */
export interface Segment {
  readonly source: ByteSource
  readonly start: number
  readonly end: number
  readonly rawBytes: number
  readonly rawCrc32: number
  readonly storedCrc32: number
  readonly objects: number
  readonly idBytes: number
  readonly cut?: LineCut | undefined
  /**
   * Some lines of one block by their places. Then the checksums of the block are not known, and `objects` counts these
   * lines: each is compared with its own checksums.
   */
  readonly placed?: PlacedLines
}

/** A segment of lines whose places are known. */
export type PlacedSegment = Segment & { readonly placed: PlacedLines }

export function isPlaced(segment: Segment): segment is PlacedSegment {
  return segment.placed !== undefined
}

/** What messages call a source. */
export function nameOf({ source }: Pick<Segment, 'source'>): string {
  return 'blob' in source ? `pack ${source.blob.split('/').at(-1)}` : 'a pack inside its record'
}

/**
 * A segment is read, and if needed inflated, at once: this bounds the smallest buffer of a response. Two blocks of the
 * usual size; a single one may be larger.
 */
export const SEGMENT_RAW_BYTES_MAX: number = 40_960

/** The segments that hold the wanted objects of one pack, in the order of the pack. */
export function* segmentsOf(tables: PackTables, wanted: Bitmap, source: ByteSource): Generator<Segment> {
  let first = 0
  while (first < tables.blocks) {
    const kind = blockUse(tables, first, wanted)
    let last = first
    let rawBytes = tables.directory.rawBytes[first]
    while (kind !== 'delta' && last + 1 < tables.blocks && blockUse(tables, last + 1, wanted) === kind) {
      rawBytes += tables.directory.rawBytes[last + 1]
      if (rawBytes > SEGMENT_RAW_BYTES_MAX) break
      last++
    }
    if (kind === 'whole') yield wholeSegment(tables, first, last, source)
    else if (kind !== 'none') yield cutSegment(tables, first, last, wanted, source)
    first = last + 1
  }
}

/** The segment of one block, for one object or a few of it. */
export function segmentOfBlock(tables: PackTables, block: number, wanted: Bitmap, source: ByteSource): Segment {
  if (blockUse(tables, block, wanted) === 'whole') return wholeSegment(tables, block, block, source)
  return cutSegment(tables, block, block, wanted, source)
}

/** The block that holds an object, by binary search. */
export function blockOf(directory: Pick<BlockDirectory, 'objectEnds'>, ordinal: number): number {
  let low = 0
  let high = directory.objectEnds.length - 1
  while (low < high) {
    const middle = (low + high) >> 1
    if (directory.objectEnds[middle] > ordinal) high = middle
    else low = middle + 1
  }
  return low
}

function firstOrdinalOf(tables: PackTables, block: number): number {
  return block === 0 ? 0 : tables.directory.objectEnds[block - 1]
}

/** The bytes of a delta block are sent by nobody: it counts as cut, also where its line is wanted. */
function blockUse(tables: PackTables, block: number, wanted: Bitmap): 'whole' | 'part' | 'delta' | 'none' {
  const first = firstOrdinalOf(tables, block)
  const end = tables.directory.objectEnds[block]
  const count = wanted.countBetween(first, end)
  if (count === 0) return 'none'
  if (tables.directory.codecs[block] === CODEC_DELTA) return 'delta'
  return count === end - first ? 'whole' : 'part'
}

function wholeSegment(tables: PackTables, first: number, last: number, source: ByteSource): Segment {
  const { directory } = tables
  let idBytes = 0
  for (let block = first; block <= last; block++) idBytes += directory.idBytes[block]
  const objects = directory.objectEnds[last] - firstOrdinalOf(tables, first)
  return segmentOf(directory, { first, last, source, objects, idBytes })
}

function cutSegment(tables: PackTables, first: number, last: number, wanted: Bitmap, source: ByteSource): Segment {
  const firstOrdinal = firstOrdinalOf(tables, first)
  const endOrdinal = tables.directory.objectEnds[last]
  let objects = 0
  let idBytes = 0
  for (let ordinal = firstOrdinal; ordinal < endOrdinal; ordinal++) {
    if (!wanted.has(ordinal)) continue
    objects++
    idBytes += entryBytes(tables.ids, ordinal)
  }
  // A copy: the tables may be lent.
  const cut = { lineBytes: tables.lineBytes.slice(firstOrdinal, endOrdinal), firstOrdinal, wanted }
  return segmentOf(tables.directory, { first, last, source, objects, idBytes, cut })
}

interface BlockRun extends Pick<Segment, 'source' | 'objects' | 'idBytes' | 'cut'> {
  readonly first: number
  readonly last: number
}

/** All properties in one literal: V8 takes far more memory for an object that another one is spread into. */
function segmentOf(directory: BlockDirectory, { first, last, source, objects, idBytes, cut }: BlockRun): Segment {
  let rawBytes = 0
  let rawCrc32 = 0
  let storedCrc32 = 0
  for (let block = first; block <= last; block++) {
    rawBytes += directory.rawBytes[block]
    rawCrc32 = crc32Combine(rawCrc32, directory.rawCrc32[block], directory.rawBytes[block])
    storedCrc32 = crc32Combine(storedCrc32, directory.storedCrc32[block], directory.storedBytes[block])
  }
  const start = directory.offsets[first]
  const end = directory.offsets[last] + directory.storedBytes[last]
  return { source, start, end, rawBytes, rawCrc32, storedCrc32, objects, idBytes, cut }
}

/** Keeps the wanted lines, moving them together in place. */
export function cutLines(raw: Uint8Array, cut: LineCut): Uint8Array {
  let from = 0
  let to = 0
  for (let i = 0; i < cut.lineBytes.length; i++) {
    const length = cut.lineBytes[i]
    if (cut.wanted.has(cut.firstOrdinal + i)) {
      if (from !== to) raw.copyWithin(to, from, from + length)
      to += length
    }
    from += length
  }
  return raw.subarray(0, to)
}
