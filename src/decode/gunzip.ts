import { Gunzip } from 'minizlib'
import { StowageError } from '../errors.ts'
import { tooLarge } from '../limits.ts'
import type { BufferPool } from '../memory/buffer-pool.ts'
import type { Yielder } from '../async/yielder.ts'

/**
 * One call inflates this much input without a pause; at DEFLATE's best ratio it becomes 4 MB, and the next slices are
 * small ones.
 */
const INPUT_SLICE_BYTES = 4_096
const BOMB_SLICE_BYTES = 512
const BOMB_OUTPUT_BYTES = 524_288
const OUTPUT_BYTES = 262_144
/**
 * The first output buffer is small, so that a client that sends little costs little; each next one is four times as
 * large.
 */
const FIRST_OUTPUT_BYTES = 16_384
/** The memory for inflating one content, apart from its output: the window, the state, and pieces on their way. */
export const GUNZIP_BYTES = 131_072
/** Writers of many small members, such as bgzip, put 64 KB in each: 10,000 are more than any upload needs. */
const MEMBERS_MAX = 10_000
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
      for (let at = 0; at < chunk.length;) {
        const slice = chunk.subarray(at, at + inflater.sliceBytes)
        at += slice.length
        for (const piece of inflater.write(slice)) {
          for (let from = 0; from < piece.length;) {
            const taken = Math.min(piece.length - from, output.length - filled)
            output.set(piece.subarray(from, from + taken), filled)
            filled += taken
            from += taken
            if (filled < output.length) continue
            yield output
            filled = 0
            if (output.length === OUTPUT_BYTES) continue
            options.bufferPool?.giveBack(output)
            output = take(output.length * 4)
          }
        }
        await options.yielder.due()
      }
    }
    inflater.end()
    if (filled > 0) yield output.subarray(0, filled)
  } finally {
    options.bufferPool?.giveBack(output)
    inflater.close()
  }
}

/**
 * Feeds `minizlib` and performs the checks that it leaves to its caller: the running total, the number of members,
 * bytes behind the last one, gzip inside gzip.
 */
class Inflater {
  readonly #options: GunzipOptions
  readonly #gunzip = new Gunzip({})
  readonly #opening: number[] = []
  /** How much to write next. */
  sliceBytes = INPUT_SLICE_BYTES
  #pieces: Uint8Array[] = []
  #failure: Error | undefined
  #members = 0
  #carry: Buffer = Buffer.alloc(0)

  constructor(options: GunzipOptions) {
    this.#options = options
    this.#gunzip.on('data', (piece: Uint8Array) => this.#pieces.push(piece))
    this.#gunzip.on('error', (error: unknown) => (this.#failure = error as Error))
  }

  write(slice: Uint8Array): readonly Uint8Array[] {
    const input = Buffer.from(slice.buffer, slice.byteOffset, slice.byteLength)
    this.#countMembers(input)
    this.#pieces = []
    this.#gunzip.write(input)
    this.#throwFailure()
    const consumed = this.#gunzip.handle?.bytesWritten
    if (consumed !== input.length) throw this.#invalid('bytes follow its last member')
    let outputBytes = 0
    for (const piece of this.#pieces) outputBytes += this.#checked(piece)
    this.sliceBytes = outputBytes > BOMB_OUTPUT_BYTES ? BOMB_SLICE_BYTES : INPUT_SLICE_BYTES
    return this.#pieces
  }

  end(): void {
    this.#gunzip.end()
    this.#throwFailure()
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

  #checked(piece: Uint8Array): number {
    const { tally, code, bytesMax, what } = this.#options
    tally.inflatedBytes += piece.length
    if (tally.inflatedBytes > bytesMax) throw tooLarge(code, `the request, inflated up to ${what},`, bytesMax)
    if (this.#opening.length < GZIP_MAGIC.length) {
      this.#opening.push(...piece.subarray(0, GZIP_MAGIC.length - this.#opening.length))
      if (startsGzip(Uint8Array.from(this.#opening))) throw this.#invalid('it holds gzip again; compress once')
    }
    return piece.length
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#invalid(this.#failure.message.replace(/^zlib: /, ''), this.#failure)
  }

  #invalid(problem: string, cause?: Error): StowageError {
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
