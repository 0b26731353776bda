import { constants, createInflateRaw } from 'node:zlib'
import type { InflateRaw } from 'node:zlib'
import { directOutput, outputInto, outputOf, type StreamOutput } from './stream-output.ts'

/** As many as the thread pool has threads, unless the host set another number. */
const LANES_MAX = 4
/** Output that does not go to the memory of the job comes in pieces of this size. */
const CHUNK_BYTES = 65_536
/** An empty final block, which completes fragments that are not final to a whole DEFLATE stream (RFC 1951, 3.2.6). */
export const FINAL_BLOCK: Uint8Array = Uint8Array.of(0x03, 0x00)

interface Job {
  readonly stored: Uint8Array
  /** A byte longer than the output should be, so that zlib sees the end. */
  readonly output: Uint8Array
  readonly resolve: (isWhole: boolean) => void
}

interface Lane {
  readonly stream: InflateRaw
  /**
   * Where output goes between two jobs, so that the stream does not keep the memory of the last one. Absent if output
   * cannot be directed: then it is copied.
   */
  readonly ownOutput: StreamOutput | undefined
  job: Job | undefined
  filledBytes: number
}

/**
 * Inflates in the thread pool with few streams, which live as long as the process. `zlib.inflateRaw` makes a stream for
 * each call: V8 takes the memory of its state for pressure, and answers with steps of 5 ms and more of its collection
 * in each of them. A download that inflates took two to four times the processor time.
 */
export class Inflater {
  readonly #idle: Lane[] = []
  #lanes = 0
  readonly #queue: Job[] = []

  /**
   * Fills all but the last byte of `output`, which nobody may use meanwhile. `false` unless `stored` is whole, well
   * formed, not final, and inflates to exactly that many bytes.
   */
  inflate(stored: Uint8Array, output: Uint8Array): Promise<boolean> {
    return new Promise((resolve) => {
      this.#queue.push({ stored, output, resolve })
      this.#startWaiting()
    })
  }

  #startWaiting(): void {
    while (this.#queue.length > 0) {
      const lane = this.#idle.pop() ?? (this.#lanes < LANES_MAX ? this.#open() : undefined)
      if (lane === undefined) return
      this.#run(lane, this.#queue.shift() as Job)
    }
  }

  #open(): Lane {
    this.#lanes++
    const stream = createInflateRaw({ chunkSize: CHUNK_BYTES })
    const lane: Lane = { stream, ownOutput: outputOf(stream), job: undefined, filledBytes: 0 }
    stream
      .on('data', (chunk: Uint8Array) => {
        if (!take(lane, chunk)) this.#drop(lane)
      })
      .on('error', () => this.#drop(lane))
      .on('end', () => this.#drop(lane))
    return lane
  }

  #run(lane: Lane, job: Job): void {
    lane.job = job
    lane.filledBytes = 0
    lane.stream.reset()
    if (lane.ownOutput !== undefined) directOutput(lane.stream, outputInto(job.output))
    lane.stream.write(job.stored)
    lane.stream.write(FINAL_BLOCK)
    // An error unless the final block was read as one, and thus began where a fragment ended.
    lane.stream.flush(constants.Z_FINISH, () => {
      if (lane.job !== job || lane.stream.destroyed) return
      lane.job = undefined
      if (lane.ownOutput !== undefined) directOutput(lane.stream, lane.ownOutput)
      job.resolve(lane.filledBytes === job.output.length - 1)
      this.#idle.push(lane)
      this.#startWaiting()
    })
  }

  /** A stream that failed or ended is never used again; another one replaces it when needed. */
  #drop(lane: Lane): void {
    const { job } = lane
    if (job === undefined) return
    lane.job = undefined
    this.#lanes--
    lane.stream.destroy()
    job.resolve(false)
    this.#startWaiting()
  }
}

/** False if there is more output than there should be. */
function take(lane: Lane, chunk: Uint8Array): boolean {
  const { job, filledBytes } = lane
  if (job === undefined || filledBytes + chunk.length >= job.output.length) return false
  const { output } = job
  const isThere = chunk.buffer === output.buffer && chunk.byteOffset === output.byteOffset + filledBytes
  if (!isThere) output.set(chunk, filledBytes)
  lane.filledBytes += chunk.length
  return true
}
