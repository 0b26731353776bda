import { constants } from 'node:zlib'
import { Gunzip } from 'minizlib'
import { SyncZlib } from '../compression/sync-zlib.ts'
import { StowageError } from '../errors.ts'
import { tooLarge } from '../limits.ts'
import type { BufferPool } from '../memory/buffer-pool.ts'
import type { Yielder } from '../async/yielder.ts'

const OUTPUT_BYTES = 262_144
/**
 * The first output buffer is small, so that a client that sends little costs little; each next one is four times as
 * large.
 */
const FIRST_OUTPUT_BYTES = 16_384
/** The memory for inflating one content, apart from its output: the window, the state, and the streams around them. */
export const GUNZIP_BYTES = 131_072
/** Writers of many small members, such as bgzip, put 64 KB in each: 10,000 are more than any upload needs. */
const MEMBERS_MAX = 10_000
const NOTHING = new Uint8Array(0)
const GZIP_MAGIC = [0x1f, 0x8b] as const
/** Every member starts with these: the magic and DEFLATE, the only method there is (RFC 1952, section 2.3.1). */
const MEMBER_START = Buffer.from([...GZIP_MAGIC, 0x08])

export interface InflateCounter {
  /** Bytes of output so far, over all parts of one request. */
  inflatedBytes: number
}

export interface GunzipOptions {
  readonly tally: InflateCounter
  readonly code: 'inflated_too_large' | 'id_list_too_large'
  readonly bytesMax: number
  /** The name of the content, for messages. */
  readonly what: string
  readonly yielder: Yielder
  /** Where the memory for output comes from. */
  readonly bufferPool?: BufferPool | undefined
}

export function startsGzip(bytes: Uint8Array): boolean {
  return bytes[0] === GZIP_MAGIC[0] && bytes[1] === GZIP_MAGIC[1]
}

/**
 * The content of gzip (RFC 1952), concatenated members included, in buffers of at most 256 KB. Each is valid until the
 * next one is requested. Only the end proves that all is well: checksums follow the content. Throws `invalid_gzip`, and
 * `code` for the first byte over `bytesMax`.
 */
export async function* gunzip(chunks: AsyncIterable<Uint8Array>, options: GunzipOptions): AsyncGenerator<Uint8Array> {
  const inflater = new Inflater(options)
  const take = (bytes: number): Uint8Array => options.bufferPool?.takeAny(bytes) ?? new Uint8Array(bytes)
  let output = take(FIRST_OUTPUT_BYTES)
  let filled = 0
  try {
    for await (const chunk of chunks) {
      inflater.begin(chunk)
      for (;;) {
        filled += inflater.fill(output.subarray(filled))
        if (filled < output.length) break
        yield output
        filled = 0
        await options.yielder.due()
        if (output.length === OUTPUT_BYTES) continue
        options.bufferPool?.giveBack(output)
        output = take(output.length * 4)
      }
      await options.yielder.due()
    }
    inflater.end()
    if (filled > 0) yield output.subarray(0, filled)
  } finally {
    options.bufferPool?.giveBack(output)
    inflater.close()
  }
}

/**
 * Writes to the stream that `minizlib` opens, and performs the checks that are left to its caller: the running total,
 * the number of members, bytes behind the last one, gzip inside gzip. A `write` of `minizlib` inflates all of its input
 * at once, whatever it becomes, into fresh memory for each piece of 16 KB; here the output goes where it is wanted, and
 * there is never more of it than fits there.
 */
class Inflater {
  readonly #options: GunzipOptions
  readonly #gunzip = new Gunzip({})
  readonly #zlib: SyncZlib
  readonly #opening: number[] = []
  #input: Uint8Array = NOTHING
  #failure: Error | undefined
  #members = 0
  #carry: Buffer = Buffer.alloc(0)

  constructor(options: GunzipOptions) {
    this.#options = options
    this.#gunzip.on('error', (error: unknown) => (this.#failure = error as Error))
    const zlib = SyncZlib.over(this.#gunzip.handle)
    if (zlib === undefined) throw new Error('zlib cannot inflate on the calling thread here, as `minizlib` does')
    this.#zlib = zlib
  }

  /** The next input, which must not change until `fill` has returned less than there was room for. */
  begin(input: Uint8Array): void {
    this.#countMembers(Buffer.from(input.buffer, input.byteOffset, input.byteLength))
    this.#input = input
  }

  /** Inflates as much as there is room for. Returns the bytes of it: fewer than that once the input is used up. */
  fill(output: Uint8Array): number {
    const input = this.#input
    const remains = this.#zlib.write(constants.Z_NO_FLUSH, input, output)
    if (remains === undefined) throw this.#failed(this.#zlib.stream.errored)
    const { inputBytes, outputBytes } = remains
    if (inputBytes > 0 && outputBytes > 0) throw this.#invalid('bytes follow its last member')
    this.#input = input.subarray(input.length - inputBytes)
    const filledBytes = output.length - outputBytes
    this.#check(output.subarray(0, filledBytes))
    return filledBytes
  }

  end(): void {
    this.#gunzip.end()
    if (this.#failure !== undefined) throw this.#failed(this.#failure)
  }

  close(): void {
    this.#gunzip.close()
  }

  /**
   * Counts possible starts of members: never fewer than there are, and in honest data about one too many in every 16
   * MB.
   */
  #countMembers(input: Buffer): void {
    const border = Buffer.concat([this.#carry, input.subarray(0, MEMBER_START.length - 1)])
    if (border.includes(MEMBER_START)) this.#members++
    for (let at = input.indexOf(MEMBER_START); at >= 0; at = input.indexOf(MEMBER_START, at + 1)) this.#members++
    this.#carry = lastBytes(this.#carry, input, MEMBER_START.length - 1)
    if (this.#members > MEMBERS_MAX) throw this.#invalid(`it has more than ${MEMBERS_MAX} members`)
  }

  #check(piece: Uint8Array): void {
    const { tally, code, bytesMax, what } = this.#options
    tally.inflatedBytes += piece.length
    if (tally.inflatedBytes > bytesMax) throw tooLarge(code, `the request, inflated up to ${what},`, bytesMax)
    if (this.#opening.length < GZIP_MAGIC.length) {
      this.#opening.push(...piece.subarray(0, GZIP_MAGIC.length - this.#opening.length))
      if (startsGzip(Uint8Array.from(this.#opening))) throw this.#invalid('it holds gzip again; compress once')
    }
  }

  /** `minizlib` puts its name before what zlib says. */
  #failed(cause: Error | null): StowageError {
    return this.#invalid(cause?.message.replace(/^zlib: /, '') ?? 'zlib does not say why', cause)
  }

  #invalid(problem: string, cause?: Error | null): StowageError {
    return new StowageError(
      'invalid_gzip',
      `${this.#options.what} is not one valid gzip content (RFC 1952): ${problem}`,
      { cause },
    )
  }
}

/** The last bytes of both, in memory of their own: `last` may be overwritten. */
function lastBytes(before: Buffer, last: Buffer, count: number): Buffer<ArrayBuffer> {
  return last.length >= count ? Buffer.from(last.subarray(-count)) : Buffer.concat([before, last]).subarray(-count)
}
