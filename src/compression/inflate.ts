import { inflateRaw, inflateRawSync } from 'node:zlib'
import type { ZlibOptions } from 'node:zlib'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'

/** An empty final block, which completes fragments that are not final to a whole DEFLATE stream (RFC 1951, 3.2.6). */
const FINAL_BLOCK = Uint8Array.of(0x03, 0x00)
const CHUNK_BYTES_MIN = 64

interface Inflated {
  readonly buffer: Uint8Array
  readonly engine: { readonly bytesWritten: number }
}

/**
 * The raw bytes of one or more raw DEFLATE fragments, one after the other, in one trip to the thread pool. Throws
 * `corrupt_data` unless they are whole, well formed, not final, and inflate to exactly `rawBytes` bytes. Never makes
 * more than that. Measured on building models: blocks of 16 KB 290 MB/s of output, 385 with the sync variant; 128 KB
 * 580 and 650.
 */
export function inflateFragments(
  stored: Uint8Array,
  rawBytes: number,
  environment: Environment = REAL_ENVIRONMENT,
): Promise<Uint8Array> {
  if (!environment.usesThreadPool) return environment.nextTurn().then(() => inflateFragmentsSync(stored, rawBytes))
  return new Promise((resolve, reject) => {
    inflateRaw(Buffer.concat([stored, FINAL_BLOCK]), inflateOptions(rawBytes), (error, result) => {
      if (error) return reject(corrupt(stored, rawBytes, error))
      try {
        resolve(checked(result as unknown as Inflated, stored, rawBytes))
      } catch (mismatch) {
        reject(mismatch)
      }
    })
  })
}

/**
 * The same on the calling thread: for a few blocks, for which the trip to the thread pool would cost more than the
 * work.
 */
export function inflateFragmentsSync(stored: Uint8Array, rawBytes: number): Uint8Array {
  let result: Inflated
  try {
    result = inflateRawSync(Buffer.concat([stored, FINAL_BLOCK]), inflateOptions(rawBytes)) as unknown as Inflated
  } catch (error) {
    throw corrupt(stored, rawBytes, error)
  }
  return checked(result, stored, rawBytes)
}

/** One byte more than is expected, so that zlib sees the end without asking for a second buffer. */
function inflateOptions(rawBytes: number): ZlibOptions {
  return { chunkSize: Math.max(CHUNK_BYTES_MIN, rawBytes + 1), maxOutputLength: Math.max(1, rawBytes), info: true }
}

function checked(result: Inflated, stored: Uint8Array, rawBytes: number): Uint8Array {
  const { buffer, engine } = result
  if (buffer.length !== rawBytes || engine.bytesWritten !== stored.length + FINAL_BLOCK.length)
    throw corrupt(stored, rawBytes)
  return buffer
}

function corrupt(stored: Uint8Array, rawBytes: number, cause?: unknown): StowageError {
  const message = `a stored fragment of ${stored.length} bytes must inflate to exactly ${rawBytes} bytes, and does not`
  return new StowageError('corrupt_data', message, { cause })
}
