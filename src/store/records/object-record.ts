import { crc32 } from 'node:zlib'
import type { LinePlace } from '../pack/line-places.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { checkSealed, RECORD_VERSION } from './seal.ts'

/** `condemned`: no root reaches the object. It can still be read, and counts as absent for uploads. */
export type ObjectState = 'live' | 'condemned'

/** An object in its pack. */
export interface ObjectPlace {
  readonly sequence: number
  readonly ordinal: number
}

/** The place of an object before it moved, for readers of a layout before `fromLayout`. */
export interface PreviousPlace extends ObjectPlace {
  readonly fromLayout: number
}

/** The place of an object, its state, and enough facts of its text to tell whether another text is the same. */
export interface ObjectRecord extends ObjectPlace, LinePlace {
  readonly state: ObjectState
  /** When it was written or revived; of a condemned object, when it was condemned. */
  readonly epoch: number
  readonly textBytes: number
  readonly textCrc32: number
  readonly previous?: PreviousPlace
}

const WHAT = 'an object record'
const CONDEMNED_BIT = 1
const PREVIOUS_BIT = 2
const BODY_BYTES = 40
const PREVIOUS_BYTES = 16
const CRC_BYTES = 4

export function encodeObjectRecord(key: Uint8Array, record: ObjectRecord): Uint8Array {
  const { previous } = record
  const bodyBytes = BODY_BYTES + (previous === undefined ? 0 : PREVIOUS_BYTES)
  const value = Buffer.allocUnsafe(bodyBytes + CRC_BYTES)
  value[0] = RECORD_VERSION
  value[1] = (record.state === 'condemned' ? CONDEMNED_BIT : 0) | (previous === undefined ? 0 : PREVIOUS_BIT)
  value.writeUInt32LE(record.epoch, 2)
  value.writeUIntLE(record.sequence, 6, 6)
  value.writeUInt32LE(record.ordinal, 12)
  value.writeUInt32LE(record.blockStart, 16)
  value.writeUInt32LE(record.blockStoredBytes, 20)
  value.writeUInt32LE(record.blockRawBytes, 24)
  value.writeUInt32LE(record.lineStart, 28)
  value.writeUInt32LE(record.textBytes, 32)
  value.writeUInt32LE(record.textCrc32, 36)
  if (previous !== undefined) {
    value.writeUIntLE(previous.fromLayout, BODY_BYTES, 6)
    value.writeUIntLE(previous.sequence, BODY_BYTES + 6, 6)
    value.writeUInt32LE(previous.ordinal, BODY_BYTES + 12)
  }
  value.writeUInt32LE(crc32(value.subarray(0, bodyBytes), crc32(key)), bodyBytes)
  return value
}

export function decodeObjectRecord(key: Uint8Array, value: Uint8Array): ObjectRecord {
  checkSealed(key, value, WHAT)
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.length)
  const hasPrevious = (bytes[1] & PREVIOUS_BIT) !== 0
  if (bytes.length !== BODY_BYTES + (hasPrevious ? PREVIOUS_BYTES : 0) + CRC_BYTES)
    throw corrupt(`${WHAT} is cut short`)
  const record: ObjectRecord = {
    state: (bytes[1] & CONDEMNED_BIT) === 0 ? 'live' : 'condemned',
    epoch: bytes.readUInt32LE(2),
    sequence: bytes.readUIntLE(6, 6),
    ordinal: bytes.readUInt32LE(12),
    blockStart: bytes.readUInt32LE(16),
    blockStoredBytes: bytes.readUInt32LE(20),
    blockRawBytes: bytes.readUInt32LE(24),
    lineStart: bytes.readUInt32LE(28),
    textBytes: bytes.readUInt32LE(32),
    textCrc32: bytes.readUInt32LE(36),
  }
  if (!hasPrevious) return record
  const previous = {
    fromLayout: bytes.readUIntLE(BODY_BYTES, 6),
    sequence: bytes.readUIntLE(BODY_BYTES + 6, 6),
    ordinal: bytes.readUInt32LE(BODY_BYTES + 12),
  }
  return { ...record, previous }
}

/** The place of the object for a reader of this layout. A merge switches for all of its objects at one layout. */
export function placeAt({ sequence, ordinal, previous }: ObjectRecord, layout: number): ObjectPlace {
  return previous === undefined || layout >= previous.fromLayout ? { sequence, ordinal } : previous
}
