import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { corruptFragment, inflateHere, inflateInPool } from './inflate.ts'
import { SYNC_INFLATER } from './sync-inflater.ts'

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
  /** For the secret as it comes out, and a byte more, so that zlib says whether the stream has ended. */
  readonly #tail: Uint8Array

  /** The secret has 16 bytes, which are random by default. */
  constructor({
    environment = REAL_ENVIRONMENT,
    secret = environment.randomBytes(SECRET_BYTES),
  }: { readonly environment?: Environment; readonly secret?: Uint8Array } = {}) {
    this.#environment = environment
    this.#secret = secret
    this.#suffix = storedFinalBlock(secret)
    this.#tail = new Uint8Array(secret.length + 1)
  }

  /** Fills `raw` with what a fragment of at most `SHORT_RAW_BYTES_MAX` raw bytes inflates to. */
  inflateInto(raw: Uint8Array, stored: Uint8Array): void {
    const isWhole = SYNC_INFLATER.whole(raw, stored, this.#suffix, this.#tail)
    if (isWhole === undefined) raw.set(this.#inflateHere(stored, raw.length))
    else if (!isWhole || Buffer.compare(this.#tail.subarray(0, this.#secret.length), this.#secret) !== 0)
      throw corruptFragment(stored.length, raw.length)
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
