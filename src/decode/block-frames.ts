import {
  BLOCK_BYTES,
  BLOCK_HEADER_BYTES,
  type BlockHeader,
  decodeBlockHeader,
  isOpening,
  OPENING_BYTES,
  storedBytesMax,
} from '../blocks/ready-blocks.ts'
import { StowageError } from '../errors.ts'
import { type Limits, tooLarge } from '../limits.ts'
import { OBJECT_ID_BYTES_MAX } from '../object/id.ts'
import { GrowingBuffer } from './growing-buffer.ts'

/** The tab and the line feed of a line. */
const LINE_FRAME_BYTES = 2

/** A block as it arrived, behind a header that may be true. */
export interface BlockFrame extends BlockHeader {
  /** Its place in the request, from 0. */
  readonly index: number
  readonly stored: Uint8Array
}

/**
 * Cuts a body of ready blocks into its blocks, across chunk borders. A header that claims more than the limits allow is
 * refused before its block arrives. All methods throw `invalid_blocks`, `object_too_large`, `inflated_too_large` and
 * `too_many_objects`.
 */
export class BlockFrames {
  readonly #limits: Pick<Limits, 'objectBytesMax' | 'inflatedBytesMax' | 'objectsMax'>
  readonly #gathered = new GrowingBuffer()
  /** What the next bytes are. */
  #next: 'opening' | 'header' | 'block' | 'nothing' = 'opening'
  #neededBytes: number = OPENING_BYTES
  #header: BlockHeader | undefined
  #blocks = 0
  #objects = 0
  #rawBytes = 0

  constructor(limits: Pick<Limits, 'objectBytesMax' | 'inflatedBytesMax' | 'objectsMax'>) {
    this.#limits = limits
  }

  /** The most bytes that it may hold after a chunk of this size. */
  memoryBytesWith(chunkBytes: number): number {
    return this.#gathered.capacityBytes + this.#gathered.growthFor(chunkBytes)
  }

  /** The blocks that end in this chunk, as views of it where they lie in it as a whole. */
  *push(chunk: Uint8Array): Generator<BlockFrame> {
    for (let at = 0; at < chunk.length;) {
      if (this.#next === 'nothing') throw this.#invalid('bytes follow the end')
      const piece = chunk.subarray(at, at + this.#neededBytes - this.#gathered.length)
      at += piece.length
      if (this.#gathered.length + piece.length < this.#neededBytes) {
        this.#gathered.add(piece)
        return
      }
      const frame = this.#take(this.#gathered.length === 0 ? piece : this.#gathered.take(piece))
      if (frame !== undefined) yield frame
    }
  }

  /** The body is complete. */
  end(): void {
    if (this.#next === 'nothing') return
    throw this.#invalid(
      this.#next === 'opening' ? 'the body ends inside the opening' : 'the body ends before its end; it was cut short',
    )
  }

  #take(bytes: Uint8Array): BlockFrame | undefined {
    if (this.#next === 'opening') {
      if (!isOpening(bytes)) throw this.#invalid('the body does not start with "STOWBLKS" and version 1')
      this.#expect('header', BLOCK_HEADER_BYTES)
      return undefined
    }
    if (this.#next === 'header') {
      this.#header = decodeBlockHeader(bytes)
      if (this.#header.storedBytes === 0) this.#checkEnd(this.#header)
      else this.#checkHeader(this.#header)
      return undefined
    }
    const header = this.#header as BlockHeader
    this.#expect('header', BLOCK_HEADER_BYTES)
    return { ...header, index: this.#blocks++, stored: bytes }
  }

  #checkHeader(header: BlockHeader): void {
    const { storedBytes, rawBytes, objects } = header
    const { objectBytesMax, inflatedBytesMax, objectsMax } = this.#limits
    if (rawBytes === 0 || objects === 0) throw this.#invalid('a block must hold at least one object')
    if (rawBytes > BLOCK_BYTES && objects > 1)
      throw this.#invalid(`a block of more than ${BLOCK_BYTES} bytes must hold one object, and has ${objects}`)
    if (rawBytes > Math.max(BLOCK_BYTES, objectBytesMax + OBJECT_ID_BYTES_MAX + LINE_FRAME_BYTES))
      throw tooLarge('object_too_large', `the object of block ${this.#blocks}`, objectBytesMax)
    if (storedBytes > storedBytesMax(rawBytes))
      throw this.#invalid(`${storedBytes} bytes are more than any compressor makes of ${rawBytes}`)
    this.#rawBytes += rawBytes
    if (this.#rawBytes > inflatedBytesMax)
      throw tooLarge('inflated_too_large', `the request, inflated up to block ${this.#blocks},`, inflatedBytesMax)
    this.#objects += objects
    if (this.#objects > objectsMax)
      throw new StowageError(
        'too_many_objects',
        `the request holds more than ${objectsMax} objects, the limit of one upload (block ${this.#blocks})`,
      )
    this.#expect('block', storedBytes)
  }

  #checkEnd({ rawBytes, objects, rawCrc32 }: BlockHeader): void {
    if (rawBytes !== this.#blocks || objects !== this.#objects || rawCrc32 !== 0)
      throw this.#invalid(
        `the end names ${rawBytes} blocks and ${objects} objects, but the body holds ${this.#blocks} and ${this.#objects}`,
      )
    this.#expect('nothing', 0)
  }

  #expect(next: 'header' | 'block' | 'nothing', neededBytes: number): void {
    this.#next = next
    this.#neededBytes = neededBytes
  }

  #invalid(problem: string): StowageError {
    return invalidBlocks(problem, this.#blocks)
  }
}

export function invalidBlocks(problem: string, block: number, cause?: unknown): StowageError {
  return new StowageError('invalid_blocks', `${problem} (block ${block})`, { cause })
}
