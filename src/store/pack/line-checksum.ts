import { crc32 } from 'node:zlib'
import { crc32Combine } from '../../compression/crc32-combine.ts'

const LINE_END = Buffer.from('\n')

/** The checksum of `<id> TAB <json> LF` from that of the JSON text. */
export function crc32OfLine(
  lines: Uint8Array,
  line: { readonly start: number; readonly idBytes: number; readonly lineBytes: number; readonly textCrc32: number },
): number {
  const textStart = line.start + line.idBytes + 1
  const textBytes = line.lineBytes - line.idBytes - 2
  const untilText = crc32Combine(crc32(lines.subarray(line.start, textStart)), line.textCrc32, textBytes)
  return crc32(LINE_END, untilText)
}
