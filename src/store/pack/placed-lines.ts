import { crc32 } from 'node:zlib'
import { corrupt } from '../bytes/byte-codec.ts'

const TAB = 0x09
const LINE_FEED = 0x0a

/** Lines of one block by their places, in the order of the block, with what they must hold. */
export interface PlacedLines {
  readonly starts: Uint32Array
  readonly idBytes: Uint32Array
  readonly textBytes: Uint32Array
  readonly idCrc32: Uint32Array
  readonly textCrc32: Uint32Array
}

/** The bytes of all these lines. */
export function placedBytes({ starts, idBytes, textBytes }: PlacedLines): number {
  let bytes = 2 * starts.length
  for (let i = 0; i < starts.length; i++) bytes += idBytes[i] + textBytes[i]
  return bytes
}

/** Where the last of these lines ends. */
export function placedEnd({ starts, idBytes, textBytes }: PlacedLines): number {
  let end = 0
  for (let i = 0; i < starts.length; i++) end = Math.max(end, starts[i] + idBytes[i] + textBytes[i] + 2)
  return end
}

/** Keeps these lines of an inflated block, moving them together in place. Throws `corrupt_data` for any other bytes. */
export function takeLines(raw: Uint8Array, lines: PlacedLines): Uint8Array {
  let to = 0
  for (let i = 0; i < lines.starts.length; i++) {
    const start = lines.starts[i]
    const textStart = start + lines.idBytes[i] + 1
    const textEnd = textStart + lines.textBytes[i]
    const isLine =
      textEnd < raw.length &&
      raw[textStart - 1] === TAB &&
      raw[textEnd] === LINE_FEED &&
      crc32(raw.subarray(start, textStart - 1)) === lines.idCrc32[i] &&
      crc32(raw.subarray(textStart, textEnd)) === lines.textCrc32[i]
    if (!isLine) throw corrupt(`the line at byte ${start} of a block is not the one that its record says`)
    if (start !== to) raw.copyWithin(to, start, textEnd + 1)
    to += textEnd + 1 - start
  }
  return raw.subarray(0, to)
}
