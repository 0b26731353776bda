import { inflateRaw, inflateRawSync } from 'node:zlib'
import type { ZlibOptions } from 'node:zlib'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { FINAL_BLOCK, Inflater } from './inflater.ts'
import { SYNC_INFLATER } from './sync-inflater.ts'

const POOL = new Inflater()
const CHUNK_BYTES_MIN = 64
/** The final block inflates to nothing; a byte more than may come. */
const FINAL_BLOCK_TAIL = new Uint8Array(1)

interface Inflated {
  readonly buffer: Uint8Array
  readonly engine: { readonly bytesWritten: number }
}

/** How much longer than its output the memory must be that is offered to `inflateFragments`. */
export const INFLATED_SPARE_BYTES = 1

export interface InflateOptions {
  readonly environment?: Environment | undefined
  /** Memory for the output, `INFLATED_SPARE_BYTES` longer than it; what is returned may still be elsewhere. */
  readonly into?: Uint8Array | undefined
}

/**
 * The raw bytes of one or more raw DEFLATE fragments, one after the other, from the thread pool. Throws `corrupt_data`
 * unless they are whole, well formed, not final, and inflate to exactly `rawBytes` bytes. Never makes more than that.
 * `stored` must not change meanwhile.
 */
export async function inflateFragments(
  stored: Uint8Array,
  rawBytes: number,
  { environment = REAL_ENVIRONMENT, into }: InflateOptions = {},
): Promise<Uint8Array> {
  if (!environment.usesThreadPool) return environment.nextTurn().then(() => inflateFragmentsSync(stored, rawBytes))
  const output = into ?? Buffer.allocUnsafeSlow(rawBytes + INFLATED_SPARE_BYTES)
  if (!(await POOL.inflate(stored, output))) throw corruptFragment(stored.length, rawBytes)
  return output.subarray(0, rawBytes)
}

/**
 * The same on the calling thread: for a few blocks, for which the trip to the thread pool would cost more than the
 * work.
 */
export function inflateFragmentsSync(stored: Uint8Array, rawBytes: number): Uint8Array {
  const output = Buffer.allocUnsafeSlow(rawBytes)
  const isWhole = SYNC_INFLATER.whole(output, stored, FINAL_BLOCK, FINAL_BLOCK_TAIL)
  if (isWhole === undefined) return inflateHere(stored, rawBytes, FINAL_BLOCK, 0)
  if (!isWhole) throw corruptFragment(stored.length, rawBytes)
  return output
}

/**
 * Fills `output` with the first of the `rawBytes` bytes that a fragment inflates to, on the calling thread. What follows
 * is not looked at. Throws `corrupt_data` if there are not so many.
 */
export function inflateBeginning(output: Uint8Array, stored: Uint8Array, rawBytes: number): void {
  const isFilled = SYNC_INFLATER.begin(output, stored)
  if (isFilled === false) throw corruptFragment(stored.length, rawBytes)
  if (isFilled === undefined) output.set(inflateFragmentsSync(stored, rawBytes).subarray(0, output.length))
}

/** `suffix` completes the fragment, and adds `suffixRawBytes` to its output. Throws `corrupt_data`. */
export function inflateHere(
  stored: Uint8Array,
  rawBytes: number,
  suffix: Uint8Array,
  suffixRawBytes: number,
): Uint8Array {
  const whole = Buffer.concat([stored, suffix])
  let result: Inflated
  try {
    result = inflateRawSync(whole, inflateOptions(rawBytes + suffixRawBytes)) as unknown as Inflated
  } catch (error) {
    throw corruptFragment(stored.length, rawBytes, error)
  }
  if (!isComplete(result, whole.length, rawBytes + suffixRawBytes)) throw corruptFragment(stored.length, rawBytes)
  return result.buffer
}

/** The same in the thread pool. */
export function inflateInPool(
  stored: Uint8Array,
  rawBytes: number,
  suffix: Uint8Array,
  suffixRawBytes: number,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const whole = Buffer.concat([stored, suffix])
    inflateRaw(whole, inflateOptions(rawBytes + suffixRawBytes), (error, result) => {
      if (error) return reject(corruptFragment(stored.length, rawBytes, error))
      const inflated = result as unknown as Inflated
      if (isComplete(inflated, whole.length, rawBytes + suffixRawBytes)) resolve(inflated.buffer)
      else reject(corruptFragment(stored.length, rawBytes))
    })
  })
}

/** One byte more than is expected, so that zlib sees the end without asking for a second buffer. */
function inflateOptions(rawBytes: number): ZlibOptions {
  return { chunkSize: Math.max(CHUNK_BYTES_MIN, rawBytes + 1), maxOutputLength: Math.max(1, rawBytes), info: true }
}

function isComplete({ buffer, engine }: Inflated, wholeBytes: number, outputBytes: number): boolean {
  return buffer.length === outputBytes && engine.bytesWritten === wholeBytes
}

export function corruptFragment(storedBytes: number, rawBytes: number, cause?: unknown): StowageError {
  const message = `a stored fragment of ${storedBytes} bytes must inflate to exactly ${rawBytes} bytes, and does not`
  return new StowageError('corrupt_data', message, { cause })
}
