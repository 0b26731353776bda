import { type ByteReader, ByteWriter, corrupt } from '../bytes/byte-codec.ts'
import type { LinePlace } from '../pack/line-places.ts'
import { open, RECORD_VERSION, seal } from './seal.ts'

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
  readonly previous?: PreviousPlace | undefined
}

const WHAT = 'an object record'
const CONDEMNED_BIT = 1
const PREVIOUS_BIT = 2
/** Most have less. */
const RECORD_BYTES = 48

export function encodeObjectRecord(key: Uint8Array, record: ObjectRecord): Uint8Array {
  const { previous } = record
  const flags = (record.state === 'condemned' ? CONDEMNED_BIT : 0) | (previous === undefined ? 0 : PREVIOUS_BIT)
  const writer = new ByteWriter(RECORD_BYTES).u8(RECORD_VERSION).u8(flags)
  writer.varint(record.epoch).varint(record.sequence).varint(record.ordinal)
  writer.varint(record.blockStart).varint(record.blockStoredBytes).varint(record.blockRawBytes)
  writer.varint(record.lineStart).varint(record.textBytes).u32(record.textCrc32)
  if (previous !== undefined) writer.varint(previous.fromLayout).varint(previous.sequence).varint(previous.ordinal)
  return seal(key, writer)
}

export function decodeObjectRecord(key: Uint8Array, value: Uint8Array): ObjectRecord {
  const reader = open(key, value, WHAT)
  const flags = reader.u8()
  const hasPrevious = (flags & PREVIOUS_BIT) !== 0
  const record: ObjectRecord = {
    state: (flags & CONDEMNED_BIT) === 0 ? 'live' : 'condemned',
    epoch: reader.varint(),
    sequence: reader.varint(),
    ordinal: reader.varint(),
    blockStart: reader.varint(),
    blockStoredBytes: reader.varint(),
    blockRawBytes: reader.varint(),
    lineStart: reader.varint(),
    textBytes: reader.varint(),
    textCrc32: reader.u32(),
    previous: hasPrevious ? readPrevious(reader) : undefined,
  }
  if (reader.remaining > 0) throw corrupt(`${WHAT} is too long`)
  return record
}

function readPrevious(reader: ByteReader): PreviousPlace {
  return { fromLayout: reader.varint(), sequence: reader.varint(), ordinal: reader.varint() }
}

/** The place of the object for a reader of this layout. A merge switches for all of its objects at one layout. */
export function placeAt({ sequence, ordinal, previous }: ObjectRecord, layout: number): ObjectPlace {
  return previous === undefined || layout >= previous.fromLayout ? { sequence, ordinal } : previous
}
