import { maskedCrc32c } from './crc32c.ts'

/*
 * The format of LevelDB's logs and manifests (its doc/log_format.md): blocks of 32 KB with records `CRC-32C: 4 | length: 2 | type: 1 | bytes`; the CRC
 * is over type and bytes. No record crosses a block; a longer one is cut into a first, middle ones and a last.
 */

const BLOCK_BYTES = 32_768
const HEADER_BYTES = 7
const TYPE_AT = 6
const [FULL, FIRST, MIDDLE, LAST] = [1, 2, 3, 4]

export interface ScannedLog {
  /** Whole records, reassembled, up to the first damaged place. */
  readonly records: readonly Uint8Array[]
  /** Bytes up to the end of the last whole record. */
  readonly wholeBytes: number
  /** Whether there are bytes beyond whole records. */
  readonly isDamaged: boolean
  /** Whether a record begins behind the damage: then it is not just a write that was cut short. */
  readonly goesOn: boolean
}

export function scanLog(bytes: Buffer): ScannedLog {
  const records: Uint8Array[] = []
  let parts: Uint8Array[] = []
  let wholeBytes = 0
  let at = skipTrailer(0)
  while (at < bytes.length) {
    const end = recordEnd(bytes, at)
    if (end === undefined) break
    const type = bytes[at + TYPE_AT]
    if ((type === FULL || type === FIRST) !== (parts.length === 0)) break
    parts.push(bytes.subarray(at + HEADER_BYTES, end))
    at = skipTrailer(end)
    if (type === FIRST || type === MIDDLE) continue
    records.push(parts.length === 1 ? parts[0] : Buffer.concat(parts))
    parts = []
    wholeBytes = end
  }
  const isDamaged = skipTrailer(wholeBytes) < bytes.length
  return { records, wholeBytes, isDamaged, goesOn: isDamaged && beginsBehind(bytes, at) }
}

/** The end of the record at `at`; `undefined` if there is no whole record that matches its CRC. */
function recordEnd(bytes: Buffer, at: number): number | undefined {
  const blockEnd = Math.min(bytes.length, at - (at % BLOCK_BYTES) + BLOCK_BYTES)
  if (blockEnd - at < HEADER_BYTES) return undefined
  const type = bytes[at + TYPE_AT]
  const end = at + HEADER_BYTES + bytes.readUInt16LE(at + 4)
  if (type < FULL || type > LAST || end > blockEnd) return undefined
  return bytes.readUInt32LE(at) === maskedCrc32c(bytes.subarray(at + TYPE_AT, end)) ? end : undefined
}

/** Bytes at the end of a block that are too few for a header are unused. */
function skipTrailer(at: number): number {
  const left = BLOCK_BYTES - (at % BLOCK_BYTES)
  return left < HEADER_BYTES ? at + left : at
}

/** Lengths may be damaged too, so this examines every byte after the damage; hardly any looks like a beginning. */
function beginsBehind(bytes: Buffer, damagedAt: number): boolean {
  for (let at = damagedAt + 1; at + HEADER_BYTES <= bytes.length; at++) {
    const type = bytes[at + TYPE_AT]
    if ((type === FULL || type === FIRST) && recordEnd(bytes, at) !== undefined) return true
  }
  return false
}
