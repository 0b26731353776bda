import { inflateBeginning } from '../../compression/inflate.ts'
import type { BlobStore } from '../../storage/backend.ts'
import { corrupt } from '../bytes/byte-codec.ts'
import { isDeltaBlock } from './delta-block.ts'
import { type PlacedLines, takeLines } from './placed-lines.ts'
import { readSource } from './read-source.ts'
import { nameOf, type PlacedSegment } from './segment.ts'
import type { SegmentReader } from './segment-reader.ts'

/** Larger blocks are read as those of a list are: inflated in the thread pool, and counted. */
const SMALL_BYTES_MAX = 65_536

/**
 * Reads single lines. What makes a list fast (reading ahead, joining neighbours, counting what an answer holds) takes
 * longer than to read and inflate one small block.
 */
export class LineReader {
  readonly #blobs: BlobStore
  readonly #reader: SegmentReader
  /** Stored bytes go here, unless another read uses it. They are needed until they are inflated. */
  #scratch: Uint8Array | undefined
  /** What they inflate to, until the lines are copied. */
  readonly #inflated = Buffer.allocUnsafeSlow(SMALL_BYTES_MAX)

  constructor(blobs: BlobStore, reader: SegmentReader) {
    this.#blobs = blobs
    this.#reader = reader
  }

  /** The lines of a segment, with their ids. */
  async read(segment: PlacedSegment, signal: AbortSignal): Promise<Uint8Array> {
    const storedBytes = segment.end - segment.start
    if (segment.rawBytes > SMALL_BYTES_MAX || storedBytes > SMALL_BYTES_MAX) return this.#readLarge(segment, signal)
    const scratch = this.#scratch ?? Buffer.allocUnsafeSlow(SMALL_BYTES_MAX)
    // If the read fails, the storage may still write into the memory, so it is not used again.
    this.#scratch = undefined
    const into = scratch.subarray(0, storedBytes)
    const stored = await readSource(this.#blobs, segment.source, segment.start, segment.end, { signal, into })
    this.#scratch = scratch
    if (isDeltaBlock(stored)) return this.#readLarge(segment, signal)
    return this.#smallLines(segment, stored)
  }

  /** Nothing is inflated behind the last line. */
  #smallLines(segment: PlacedSegment, stored: Uint8Array): Uint8Array {
    try {
      const raw = this.#inflated.subarray(0, Math.min(segment.rawBytes, endOf(segment.placed)))
      inflateBeginning(raw, stored, segment.rawBytes)
      return Buffer.from(takeLines(raw, segment.placed))
    } catch (cause) {
      throw corrupt(`the block at byte ${segment.start} of ${nameOf(segment)} is damaged`, cause)
    }
  }

  async #readLarge(segment: PlacedSegment, signal: AbortSignal): Promise<Uint8Array> {
    const buffers = this.#reader.memory.open()
    try {
      const pieces: Uint8Array[] = []
      for await (const piece of this.#reader.lines([[segment]], { signal, buffers })) pieces.push(piece)
      return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
    } finally {
      buffers.end()
    }
  }
}

/** Where the last of these lines ends. */
function endOf({ starts, idBytes, textBytes }: PlacedLines): number {
  return starts.reduce((end, start, i) => Math.max(end, start + idBytes[i] + textBytes[i] + 2), 0)
}
