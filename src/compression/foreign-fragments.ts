import { constants, createInflateRaw } from 'node:zlib'
import type { InflateRaw } from 'node:zlib'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { corruptFragment, inflateHere, inflateInPool } from './inflate.ts'

/** A final block that is not compressed (RFC 1951, 3.2.4): 1, its length, and the complement of that. */
const STORED_BLOCK_HEADER_BYTES = 5
/** Nobody guesses so many bytes. */
const SECRET_BYTES = 16

/** Up to so many raw bytes are inflated on the calling thread: all threads together take less time then. */
export const SHORT_RAW_BYTES_MAX = 65_536

/**
 * Inflates fragments from an untrusted source. Each must be one DEFLATE fragment that is whole, well formed and not
 * final, ends on a byte boundary, refers to nothing before it, and inflates to exactly the bytes that are expected:
 * it can stand between any two others. All else throws `corrupt_data`.
 *
 * To complete a fragment with the constant final block does not prove that. The last bits of a forged one can turn the
 * two bytes into the end of a symbol, and an answer that contains it is broken from there on. So a block of secret bytes
 * follows it instead. Only a block that is not compressed copies bytes that the forger cannot know. That is either ours,
 * which the decoder then met between two blocks and on a byte boundary, or one that was left open and copies the header
 * of ours as well.
 */
export class ForeignFragments {
  readonly #environment: Environment
  readonly #secret: Uint8Array
  readonly #suffix: Uint8Array

  /** The secret has 16 bytes, which are random by default. */
  constructor({
    environment = REAL_ENVIRONMENT,
    secret = environment.randomBytes(SECRET_BYTES),
  }: { readonly environment?: Environment; readonly secret?: Uint8Array } = {}) {
    this.#environment = environment
    this.#secret = secret
    this.#suffix = storedFinalBlock(secret)
  }

  /** Fills `raw` with what a fragment of at most `SHORT_RAW_BYTES_MAX` raw bytes inflates to. */
  inflateInto(raw: Uint8Array, stored: Uint8Array): void {
    const done = SHORT_INFLATER.inflate(raw, stored, this.#suffix, this.#secret)
    if (done === false) throw corruptFragment(stored.length, raw.length)
    if (done === undefined) raw.set(this.#inflateHere(stored, raw.length))
  }

  /** What a longer fragment inflates to, in the thread pool if there is one. */
  async inflateLong(stored: Uint8Array, rawBytes: number): Promise<Uint8Array> {
    if (!this.#environment.usesThreadPool) return this.#inflateHere(stored, rawBytes)
    return this.#checked(await inflateInPool(stored, rawBytes, this.#suffix, this.#secret.length), stored, rawBytes)
  }

  #inflateHere(stored: Uint8Array, rawBytes: number): Uint8Array {
    return this.#checked(inflateHere(stored, rawBytes, this.#suffix, this.#secret.length), stored, rawBytes)
  }

  #checked(bytes: Uint8Array, stored: Uint8Array, rawBytes: number): Uint8Array {
    const raw = bytes.subarray(0, rawBytes)
    if (!endsWith(bytes, this.#secret) || endsWith(raw, this.#suffix.subarray(0, STORED_BLOCK_HEADER_BYTES)))
      throw corruptFragment(stored.length, rawBytes)
    return raw
  }
}

/**
 * What lies behind the streams of `node:zlib`, in every version of Node that there is, and not in its documentation.
 * After a call the first number of the state is what remains of the output, and the second what remains of the input.
 */
interface ZlibInternals {
  readonly _handle?: ZlibHandle | null
  readonly _writeState?: Uint32Array
}

interface ZlibHandle {
  reset(): void
  writeSync(
    flush: number,
    input: Uint8Array,
    inputStart: number,
    inputBytes: number,
    output: Uint8Array,
    outputStart: number,
    outputBytes: number,
  ): void
}

/**
 * Inflates fragments into memory of the caller, with one stream for all of them. `inflateRawSync` makes a stream, its
 * state of 40 KB and a buffer for each: with all their garbage, decoding a body took one and a half times as long.
 */
class ShortInflater {
  /** A byte more than may come, so that zlib says whether the stream has ended. */
  readonly #tail = new Uint8Array(SECRET_BYTES + 1)
  #stream: InflateRaw | undefined

  /** `undefined` on a platform without these internals. */
  inflate(raw: Uint8Array, stored: Uint8Array, suffix: Uint8Array, secret: Uint8Array): boolean | undefined {
    const stream = (this.#stream ??= createInflateRaw().on('error', () => undefined))
    const { _handle: handle, _writeState: state } = stream as unknown as ZlibInternals
    if (typeof handle?.writeSync !== 'function' || state === undefined) return undefined
    handle.reset()
    const isDone =
      this.#write({ stream, handle, state }, constants.Z_NO_FLUSH, stored, raw) === 0 &&
      this.#write({ stream, handle, state }, constants.Z_FINISH, suffix, this.#tail) === 1 &&
      Buffer.compare(this.#tail.subarray(0, SECRET_BYTES), secret) === 0
    // An error closes the stream, and a closed one must never be called again.
    if (stream.destroyed) this.#stream = undefined
    return isDone
  }

  /** The bytes of the output that remain; -1 if the input is not one that the stream takes as a whole. */
  #write(
    {
      stream,
      handle,
      state,
    }: { readonly stream: InflateRaw; readonly handle: ZlibHandle; readonly state: Uint32Array },
    flush: number,
    input: Uint8Array,
    output: Uint8Array,
  ): number {
    handle.writeSync(flush, input, 0, input.length, output, 0, output.length)
    const [outputLeft, inputLeft] = state
    return stream.destroyed || inputLeft > 0 ? -1 : outputLeft
  }
}

const SHORT_INFLATER = new ShortInflater()

function endsWith(bytes: Uint8Array, end: Uint8Array): boolean {
  return bytes.length >= end.length && Buffer.compare(bytes.subarray(bytes.length - end.length), end) === 0
}

function storedFinalBlock(content: Uint8Array): Uint8Array {
  const block = new Uint8Array(STORED_BLOCK_HEADER_BYTES + content.length)
  const header = new DataView(block.buffer)
  header.setUint8(0, 1)
  header.setUint16(1, content.length, true)
  header.setUint16(3, ~content.length & 0xffff, true)
  block.set(content, STORED_BLOCK_HEADER_BYTES)
  return block
}
