import { constants, createDeflateRaw, deflateRawSync } from 'node:zlib'
import type { DeflateRaw } from 'node:zlib'
import { directOutput, outputInto, outputOf } from './stream-output.ts'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'

export interface DeflatePoolOptions {
  /** 1 (fastest) to 9 (smallest), as in zlib. */
  readonly level: number
  /**
   * How far back an input may refer, in bytes and as a power of two: 9 to 15, as in zlib. With 15, the default, a stream
   * holds 268 KB; with 14 it holds 160 KB.
   */
  readonly windowBits?: number
  /** Compressions that the thread pool has at once; by default one for each core and 6 more. */
  readonly concurrency?: number
  /** Without a thread pool, inputs are compressed on the calling thread. */
  readonly environment?: Environment | undefined
}

/**
 * They wait in the queue of the thread pool, whose threads take the next one at once: a core would be idle while the main
 * thread, which may be busy or wait for a core itself, has yet to hand it the next input.
 */
const IN_RESERVE = 6

const WINDOW_BITS_MAX = 15
const MEM_LEVEL_MAX = 8

interface Job {
  readonly raw: Uint8Array
  readonly into: Uint8Array | undefined
  readonly resolve: (deflated: Uint8Array) => void
  readonly reject: (error: Error) => void
}

interface Lane {
  readonly stream: DeflateRaw
  job: Job | undefined
}

/**
 * Outputs share buffers of this size; an output that crosses the end of one costs a second trip to the thread pool and
 * a copy.
 */
const OUTPUT_BUFFER_BYTES = 131_072
/** With which a full flush ends, and a little more. */
const FLUSH_BYTES = 32
/** A lane is read once for each write, when the write is through: it must never wait for a reader before. */
const NEVER_FULL_BYTES = 2 ** 30

/**
 * Raw DEFLATE (RFC 1951) in the thread pool, many inputs at once, each for itself.
 *
 * Each lane is one zlib stream that lives as long as the pool and is flushed with `Z_FULL_FLUSH` after each input: the
 * output ends on a byte boundary, is not final, and refers to nothing before it. Measured with building models, in MB
 * of input for each second of one core: blocks of 16 KB 155 at level 1, 95 at level 4, 75 at level 6 (ratios 5.2, 5.8,
 * 6.1); segments of 128 KB 200 at level 1, 145 at level 4, 78 at level 6 (6.0, 7.0, 7.4); inputs of 1 KB 35 at level 1,
 * since a call costs about 25 microseconds. One-shot `zlib.deflateRaw`, which makes a state of 268 KB for each call,
 * does a fifth less on blocks. Resident memory stayed flat (within 6 MB) over 100,000 blocks.
 */
export class DeflatePool {
  readonly level: number
  readonly concurrency: number
  readonly #windowBits: number
  readonly #environment: Environment
  readonly #idle: Lane[] = []
  readonly #busy: Set<Lane> = new Set()
  #queue: Job[] = []
  #closed = false

  /** Throws `RangeError` for a level, a window or a concurrency that is out of range. */
  constructor(options: DeflatePoolOptions) {
    const { level, windowBits = WINDOW_BITS_MAX, environment = REAL_ENVIRONMENT } = options
    const { concurrency = environment.parallelism + IN_RESERVE } = options
    checkRange('level', level, 1, 9)
    checkRange('windowBits', windowBits, 9, WINDOW_BITS_MAX)
    checkRange('concurrency', concurrency, 1, 1_024)
    this.level = level
    this.concurrency = concurrency
    this.#windowBits = windowBits
    this.#environment = environment
  }

  /**
   * `raw` as one fragment. `raw` must not change until it resolves. The fragment lies at the start of `into`, if it fits
   * there, and may otherwise be a view of a larger buffer: copy it to keep it long. At most `concurrency` inputs are compressed at once, the rest wait in order. Rejects with
   * `closing` after `close()`.
   */
  deflate(raw: Uint8Array, into?: Uint8Array): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(closedError())
    if (raw.length === 0) return Promise.resolve(new Uint8Array(0))
    if (!this.#environment.usesThreadPool) return this.#deflateHere(raw)
    return new Promise((resolve, reject) => {
      const job = { raw, into, resolve, reject }
      const lane = this.#freeLane()
      if (lane === undefined) this.#queue.push(job)
      else this.#run(lane, job)
    })
  }

  /** Frees the streams. What is under way or waiting is rejected with `closing`. */
  close(): void {
    this.#closed = true
    const waiting = this.#queue
    this.#queue = []
    for (const lane of [...this.#busy, ...this.#idle]) this.#drop(lane, closedError())
    for (const job of waiting) job.reject(closedError())
  }

  async #deflateHere(raw: Uint8Array): Promise<Uint8Array> {
    await this.#environment.nextTurn()
    if (this.#closed) throw closedError()
    return deflateRawSync(raw, { ...this.#streamOptions(), finishFlush: constants.Z_FULL_FLUSH })
  }

  /** `memLevel` sizes the other memory of a stream, and is 8 for the largest window, as by default in zlib. */
  #streamOptions(): { readonly level: number; readonly windowBits: number; readonly memLevel: number } {
    return {
      level: this.level,
      windowBits: this.#windowBits,
      memLevel: this.#windowBits - WINDOW_BITS_MAX + MEM_LEVEL_MAX,
    }
  }

  #freeLane(): Lane | undefined {
    const lane = this.#idle.pop()
    if (lane !== undefined || this.#busy.size >= this.concurrency) return lane
    return this.#open()
  }

  #open(): Lane {
    const options = {
      ...this.#streamOptions(),
      flush: constants.Z_FULL_FLUSH,
      chunkSize: OUTPUT_BUFFER_BYTES,
      readableHighWaterMark: NEVER_FULL_BYTES,
    }
    const lane: Lane = { stream: createDeflateRaw(options), job: undefined }
    lane.stream.on('error', (error) => {
      this.#drop(lane, error)
      this.#startWaiting()
    })
    return lane
  }

  #run(lane: Lane, job: Job): void {
    lane.job = job
    this.#busy.add(lane)
    const ownOutput = job.into === undefined ? undefined : outputOf(lane.stream)
    if (job.into !== undefined && ownOutput !== undefined) directOutput(lane.stream, outputInto(job.into))
    lane.stream.write(job.raw, (error) => {
      if (lane.job !== job || error) return
      const deflated = readAll(lane.stream)
      if (ownOutput !== undefined) directOutput(lane.stream, ownOutput)
      lane.job = undefined
      this.#busy.delete(lane)
      this.#idle.push(lane)
      this.#startWaiting()
      job.resolve(deflated)
    })
  }

  /** A lane whose stream failed, or is no longer wanted, is never used again; another one replaces it when needed. */
  #drop(lane: Lane, error: Error): void {
    const job = lane.job
    lane.job = undefined
    this.#busy.delete(lane)
    const place = this.#idle.indexOf(lane)
    if (place !== -1) this.#idle.splice(place, 1)
    lane.stream.destroy()
    job?.reject(error)
  }

  #startWaiting(): void {
    while (this.#queue.length > 0) {
      const lane = this.#freeLane()
      if (lane === undefined) return
      this.#run(lane, this.#queue.shift() as Job)
    }
  }
}

/** The memory in which the fragment of so many bytes fits, by zlib's own bound (`compressBound`) and the flush. */
export function deflatedBytesMax(rawBytes: number): number {
  return rawBytes + (rawBytes >>> 12) + (rawBytes >>> 14) + (rawBytes >>> 25) + FLUSH_BYTES
}

/** All buffered output of the stream. Up to Node 24 one `read()` returns all of it, from Node 26 on one buffer. */
function readAll(stream: Lane['stream']): Uint8Array {
  const buffers: Uint8Array[] = []
  for (let buffer = stream.read() as Uint8Array | null; buffer !== null; buffer = stream.read() as Uint8Array | null)
    buffers.push(buffer)
  return buffers.length === 1 ? buffers[0] : Buffer.concat(buffers)
}

function checkRange(name: string, value: number, least: number, most: number): void {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RangeError(`${name} is ${value}; it must be an integer from ${least} to ${most}`)
  }
}

function closedError(): StowageError {
  return new StowageError('closing', 'the compressor was closed before this was compressed')
}
