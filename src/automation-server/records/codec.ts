import { crc32 } from 'node:zlib'
import { StowageError } from '../../errors.ts'

const VERSION = 1
const CRC_BYTES = 4

/**
 * A version byte, JSON as UTF-8, and a CRC-32 over key and value. A damaged value, or one under a damaged key, is an
 * error and never an answer.
 */
export function encodeRecord(key: Uint8Array, value: unknown): Uint8Array {
  const json = Buffer.from(JSON.stringify(value), 'utf8')
  const bytes = Buffer.allocUnsafe(1 + json.length + CRC_BYTES)
  bytes[0] = VERSION
  json.copy(bytes, 1)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, 1 + json.length), crc32(key)), 1 + json.length)
  return bytes
}

/** Throws `corrupt_data`. `T` is the type that this release writes under such a key. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the one place where bytes become a type
export function decodeRecord<T>(key: Uint8Array, value: Uint8Array): T {
  const body = value.subarray(0, Math.max(0, value.length - CRC_BYTES))
  const stored =
    value.length <= CRC_BYTES
      ? -1
      : Buffer.from(value.buffer, value.byteOffset + body.length, CRC_BYTES).readUInt32LE(0)
  if (stored !== crc32(body, crc32(key)))
    throw new StowageError('corrupt_data', 'a record of automation does not match its CRC-32')
  if (body[0] !== VERSION)
    throw new StowageError(
      'corrupt_data',
      `a record of automation has version ${body[0]}; this release reads version ${VERSION}`,
    )
  return JSON.parse(Buffer.from(body.buffer, body.byteOffset + 1, body.length - 1).toString('utf8')) as T
}
