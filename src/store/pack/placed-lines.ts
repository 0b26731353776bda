import { crc32 } from 'node:zlib'
import { corrupt } from '../bytes/byte-codec.ts'

const TAB = 0x09
const LINE_FEED = 0x0a

/** Where a line begins in its inflated block, and what it must hold. */
export interface PlacedLine {
  readonly start: number
  readonly idBytes: number
  readonly textBytes: number
  readonly idCrc32: number
  readonly textCrc32: number
}

/** Lines of one block, in the order of the block. */
export type PlacedLines = readonly PlacedLine[]

/** The bytes of all these lines. */
export function placedBytes(lines: PlacedLines): number {
  let bytes = 0
  for (const line of lines) bytes += lineEnd(line) - line.start
  return bytes
}

/** Where the last of these lines ends. */
export function placedEnd(lines: PlacedLines): number {
  let end = 0
  for (const line of lines) end = Math.max(end, lineEnd(line))
  return end
}

/** Keeps these lines of an inflated block, moving them together in place. Throws `corrupt_data` for any other bytes. */
export function takeLines(raw: Uint8Array, lines: PlacedLines): Uint8Array {
  let to = 0
  for (const line of lines) {
    const { start } = line
    const end = lineEnd(line)
    if (!isLine(raw, line)) throw corrupt(`the line at byte ${start} of a block is not the one that its record says`)
    if (start !== to) raw.copyWithin(to, start, end)
    to += end - start
  }
  return raw.subarray(0, to)
}

function isLine(raw: Uint8Array, { start, idBytes, textBytes, idCrc32, textCrc32 }: PlacedLine): boolean {
  const textStart = start + idBytes + 1
  const textEnd = textStart + textBytes
  return (
    textEnd < raw.length &&
    raw[textStart - 1] === TAB &&
    raw[textEnd] === LINE_FEED &&
    crc32(raw.subarray(start, textStart - 1)) === idCrc32 &&
    crc32(raw.subarray(textStart, textEnd)) === textCrc32
  )
}

/** Behind its line feed. */
function lineEnd({ start, idBytes, textBytes }: PlacedLine): number {
  return start + idBytes + textBytes + 2
}
