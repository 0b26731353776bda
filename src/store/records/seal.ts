import { crc32 } from 'node:zlib'
import { ByteReader, type ByteWriter, corrupt } from '../bytes/byte-codec.ts'

/**
 * Values of records: a version byte, the fields, and a CRC-32 over key and value, so that a value that is damaged, or
 * that sits under a damaged key, is an error and never a wrong answer.
 */
export const RECORD_VERSION = 4

export function seal(key: Uint8Array, writer: ByteWriter): Uint8Array {
  const body = writer.finish()
  return writer.u32(crc32(body, crc32(key))).finish()
}

/** The version of a value that matches its checksum; `undefined` for a damaged one. */
export function versionOf(key: Uint8Array, value: Uint8Array): number | undefined {
  const body = value.subarray(0, Math.max(0, value.length - 4))
  const stored = value.length < 5 ? -1 : Buffer.from(value.buffer, value.byteOffset + body.length, 4).readUInt32LE(0)
  return stored === crc32(body, crc32(key)) ? value[0] : undefined
}

/** Throws `corrupt_data` for a damaged value and for another version. */
function checkSealed(key: Uint8Array, value: Uint8Array, what: string): void {
  const version = versionOf(key, value)
  if (version === undefined) throw corrupt(`${what} does not match its CRC-32`)
  if (version !== RECORD_VERSION)
    throw corrupt(`${what} has version ${version}; this release reads version ${RECORD_VERSION}`)
}

/** The fields of a value. Throws `corrupt_data` for a damaged one and for another version. */
export function open(key: Uint8Array, value: Uint8Array, what: string): ByteReader {
  checkSealed(key, value, what)
  const reader = new ByteReader(value.subarray(0, -4), what)
  reader.u8()
  return reader
}
