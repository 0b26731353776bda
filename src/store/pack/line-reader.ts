import type { BlobStore } from '../../storage/backend.ts'
import { isDeltaBlock } from './delta-block.ts'
import { beginningLines, INFLATED_HERE_BYTES_MAX } from './inflated-segments.ts'
import { readSource } from './read-source.ts'
import type { PlacedSegment } from './segment.ts'
import type { SegmentReader } from './segment-reader.ts'

/**
 * Reads single lines. What makes a list fast (reading ahead, joining neighbours, counting what an answer holds) takes
 * longer than to read and inflate one small block.
 */
export class LineReader {
  readonly #blobs: BlobStore
  readonly #reader: SegmentReader
  /** Stored bytes go here, unless another read uses it. They are needed until they are inflated. */
  #scratch: Uint8Array | undefined

  constructor(blobs: BlobStore, reader: SegmentReader) {
    this.#blobs = blobs
    this.#reader = reader
  }

  /** The lines of a segment, with their ids. */
  async read(segment: PlacedSegment, signal: AbortSignal): Promise<Uint8Array> {
    const storedBytes = segment.end - segment.start
    if (segment.rawBytes > INFLATED_HERE_BYTES_MAX || storedBytes > INFLATED_HERE_BYTES_MAX)
      return this.#readLarge(segment, signal)
    const scratch = this.#scratch ?? Buffer.allocUnsafeSlow(INFLATED_HERE_BYTES_MAX)
    // If the read fails, the storage may still write into the memory, so it is not used again.
    this.#scratch = undefined
    const into = scratch.subarray(0, storedBytes)
    const stored = await readSource(this.#blobs, segment.source, segment.start, segment.end, { signal, into })
    this.#scratch = scratch
    if (isDeltaBlock(stored)) return this.#readLarge(segment, signal)
    return beginningLines(segment, stored)
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
