import { crc32 } from 'node:zlib'
import type { PackTables } from './pack-format.ts'
import { blockOf, type ByteSource, type PlacedSegment } from './segment.ts'

/** The line of an object in its pack: the block that holds it, and its start in the inflated block. */
export interface LinePlace {
  readonly blockStart: number
  readonly blockStoredBytes: number
  readonly blockRawBytes: number
  readonly lineStart: number
}

/** Where a line lies, and its text. */
export interface TextPlace extends LinePlace {
  readonly textBytes: number
  readonly textCrc32: number
}

/** The lines of the objects from `first` up to, not including, `end`. */
export function* linePlaces({ directory, lineBytes }: PackTables, first: number, end: number): Generator<LinePlace> {
  if (first >= end) return
  let block = blockOf(directory, first)
  let lineStart = 0
  for (let before = block === 0 ? 0 : directory.objectEnds[block - 1]; before < first; before++)
    lineStart += lineBytes[before]
  for (let ordinal = first; ordinal < end; ordinal++) {
    while (ordinal >= directory.objectEnds[block]) {
      block++
      lineStart = 0
    }
    yield {
      blockStart: directory.offsets[block],
      blockStoredBytes: directory.storedBytes[block],
      blockRawBytes: directory.rawBytes[block],
      lineStart,
    }
    lineStart += lineBytes[ordinal]
  }
}

/** The line of one object by its place. */
export function placedLine(
  source: ByteSource,
  id: Uint8Array,
  { blockStart, blockStoredBytes, blockRawBytes, lineStart, textBytes, textCrc32 }: TextPlace,
): PlacedSegment {
  return {
    source,
    start: blockStart,
    end: blockStart + blockStoredBytes,
    rawBytes: blockRawBytes,
    rawCrc32: 0,
    storedCrc32: 0,
    objects: 1,
    idBytes: 0,
    placed: [{ start: lineStart, idBytes: id.length, textBytes, idCrc32: crc32(id), textCrc32 }],
  }
}
