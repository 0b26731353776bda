import { crc32 } from 'node:zlib'
import type { Environment } from '../../environment.ts'
import { inflateFragments } from '../../compression/inflate.ts'
import { applyDelta, DeltaFault, parseDelta } from '../../delta/delta.ts'
import { ByteReader, ByteWriter, corrupt } from '../bytes/byte-codec.ts'
import type { LinePlace } from './line-places.ts'

/*
 * A delta block holds one line as edits (see `Delta`) to an earlier line of the same pack, its base, which may lie in a delta block too:
 *
 *     mark, 3 zeros | base: start of its block, stored bytes, raw bytes, start of the line in it, length of the line | raw bytes of the delta | CRC-32
 *     the delta as JSON, as one DEFLATE fragment
 *
 * The numbers have 32 bits. The mark tells such a block from any other by its first byte: no DEFLATE fragment begins with a block of the type 11,
 * which is reserved (RFC 1951, section 3.2.3).
 */

const MARK = 0b110
const MARK_MASK = 0b111
const HEADER_BYTES = 32
/** Deltas on deltas, at most. Versions of one object lie side by side, so that a few reads bring all of them. */
export const DELTA_DEPTH_MAX = 32
/** Bytes before a base that are read along. */
const READ_ALONG_BYTES = 65_536

/** The line that a delta block is based on. */
export interface BaseLine extends LinePlace {
  readonly lineBytes: number
}

interface BlockReading {
  /** Stored bytes of the pack. */
  readonly read: (start: number, end: number) => Promise<Uint8Array>
  readonly environment: Environment
}

/** Whether these are the stored bytes of a delta block. */
export function isDeltaBlock(stored: Uint8Array): boolean {
  return stored.length > 0 && (stored[0] & MARK_MASK) === MARK
}

/** A delta block. `deflated` is the delta as one fragment, which inflates to `deltaBytes` bytes. */
export function encodeDeltaBlock(base: BaseLine, deltaBytes: number, deflated: Uint8Array): Uint8Array {
  const header = new ByteWriter(HEADER_BYTES).u32(MARK).u32(base.blockStart).u32(base.blockStoredBytes)
  header.u32(base.blockRawBytes).u32(base.lineStart).u32(base.lineBytes).u32(deltaBytes)
  return Buffer.concat([header.u32(crc32(header.finish())).finish(), deflated])
}

/** The lines of any block. Throws `corrupt_data`. */
export function inflateBlock(stored: Uint8Array, rawBytes: number, reading: BlockReading): Promise<Uint8Array> {
  return isDeltaBlock(stored)
    ? inflateDeltaBlock(stored, rawBytes, reading)
    : inflateFragments(stored, rawBytes, { environment: reading.environment })
}

/** The line of a delta block. Throws `corrupt_data`. */
export function inflateDeltaBlock(stored: Uint8Array, rawBytes: number, reading: BlockReading): Promise<Uint8Array> {
  return inflateDelta(stored, rawBytes, { ...reading, read: backwards(reading.read) }, 1)
}

async function inflateDelta(
  stored: Uint8Array,
  rawBytes: number,
  reading: BlockReading,
  depth: number,
): Promise<Uint8Array> {
  if (depth > DELTA_DEPTH_MAX) throw corrupt(`a delta in a pack is based on more than ${DELTA_DEPTH_MAX - 1} others`)
  const { read, environment } = reading
  const { base, deltaBytes, deflated } = decodeDeltaBlock(stored)
  const baseStored = await read(base.blockStart, base.blockStart + base.blockStoredBytes)
  const baseRaw = isDeltaBlock(baseStored)
    ? await inflateDelta(baseStored, base.blockRawBytes, reading, depth + 1)
    : await inflateFragments(baseStored, base.blockRawBytes, { environment })
  const json = await inflateFragments(deflated, deltaBytes, { environment })
  const baseLine = baseRaw.subarray(base.lineStart, base.lineStart + base.lineBytes)
  const line = applied(Buffer.from(json.buffer, json.byteOffset, json.length).toString('utf8'), baseLine, rawBytes)
  if (line.length !== rawBytes) throw corrupt(`a delta in a pack makes ${line.length} bytes instead of ${rawBytes}`)
  return line
}

/** Reads that go backwards, each of which brings what lies before. */
function backwards(read: BlockReading['read']): BlockReading['read'] {
  let bytes: Uint8Array = new Uint8Array(0)
  let bytesStart = 0
  return async (start, end) => {
    if (start < bytesStart || end > bytesStart + bytes.length) {
      bytesStart = Math.max(0, Math.min(start, end - READ_ALONG_BYTES))
      bytes = await read(bytesStart, end)
    }
    return bytes.subarray(start - bytesStart, end - bytesStart)
  }
}

function applied(json: string, baseLine: Uint8Array, rawBytes: number): Uint8Array {
  try {
    return applyDelta(parseDelta(json), baseLine, rawBytes, crc32)
  } catch (error) {
    if (!(error instanceof DeltaFault)) throw error
    throw corrupt('a delta in a pack cannot be applied', error)
  }
}

function decodeDeltaBlock(stored: Uint8Array): {
  readonly base: BaseLine
  readonly deltaBytes: number
  readonly deflated: Uint8Array
} {
  const reader = new ByteReader(stored, 'a delta in a pack')
  reader.u32()
  const base = {
    blockStart: reader.u32(),
    blockStoredBytes: reader.u32(),
    blockRawBytes: reader.u32(),
    lineStart: reader.u32(),
    lineBytes: reader.u32(),
  }
  const deltaBytes = reader.u32()
  if (reader.u32() !== crc32(stored.subarray(0, HEADER_BYTES - 4)))
    throw corrupt('the header of a delta in a pack does not match its CRC-32')
  return { base, deltaBytes, deflated: stored.subarray(HEADER_BYTES) }
}
