import { crc32 } from 'node:zlib'
import { Yielder } from '../async/yielder.ts'
import { BLOCKS_MEDIA_TYPE } from '../blocks/ready-blocks.ts'
import { ForeignFragments, SHORT_RAW_BYTES_MAX } from '../compression/foreign-fragments.ts'
import { REAL_ENVIRONMENT } from '../environment.ts'
import { isServiceError, StowageError } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { BufferPool } from '../memory/buffer-pool.ts'
import type { ReceivedBlocks } from '../object/received-block.ts'
import { type BlockFrame, BlockFrames, invalidBlocks } from './block-frames.ts'
import { isGzipEncoded } from './content-format.ts'
import type { DecodeOptions } from './decode-upload.ts'
import { readWire, type UploadSource } from './wire.ts'

/** Blocks that are inflated without a pause, and are looked up together. */
const GROUP_RAW_BYTES = 1_048_576

/** Whether the body consists of ready blocks. */
export function isBlockUpload({ contentType }: Pick<UploadSource, 'contentType'>): boolean {
  return contentType.mediaType === BLOCKS_MEDIA_TYPE
}

/**
 * The blocks of an upload of ready blocks, inflated and compared with their checksums, up to 1 MB at a time. Their
 * lines are not looked at. Who needs what they inflate to no more may give it back to the pool of `memory`. Nothing may be kept before the iteration has ended well: an error can stand behind the last block.
 *
 * Throws `invalid_blocks`, `unsupported_media_type`, `request_too_large`, `request_aborted`, `object_too_large`, `inflated_too_large` and
 * `too_many_objects`. Returning early returns the body's iterator.
 */
export async function* decodeBlocks(
  source: UploadSource,
  limits: Limits,
  { signal, memory, environment = REAL_ENVIRONMENT }: DecodeOptions,
): AsyncGenerator<ReceivedBlocks> {
  if (isGzipEncoded(source.contentEncoding, 'the body'))
    throw new StowageError('unsupported_media_type', 'ready blocks are compressed; send them without Content-Encoding')
  const yielder = new Yielder(environment)
  const fragments = new ForeignFragments({ environment })
  const body = readWire(source, { code: 'request_too_large', bytesMax: limits.requestBytesMax, signal, yielder })
  const frames = new BlockFrames(limits)
  const group = new FrameGroup(memory?.bufferPool)
  const arriving = memory?.part()
  const inflating = memory?.part()
  for await (const chunk of body) {
    await arriving?.set(frames.memoryBytesWith(chunk.length))
    for (const frame of frames.push(chunk)) {
      if (!group.hasRoomFor(frame)) yield await group.inflate(fragments)
      group.add(frame)
      await inflating?.set(group.memoryBytes)
      await yielder.due()
    }
  }
  frames.end()
  await arriving?.set(0)
  if (!group.isEmpty) yield await group.inflate(fragments)
  await inflating?.set(0)
}

/** Gathers blocks, and inflates them into one buffer. */
class FrameGroup {
  readonly #bufferPool: BufferPool | undefined
  #frames: BlockFrame[] = []
  #rawBytes = 0
  #storedBytes = 0

  constructor(bufferPool: BufferPool | undefined) {
    this.#bufferPool = bufferPool
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0
  }

  /** Whether it holds a block that is inflated in the thread pool, alone. */
  get #isLong(): boolean {
    return this.#frames.length === 1 && this.#rawBytes > SHORT_RAW_BYTES_MAX
  }

  /** Bytes that its blocks hold, inflated too; a long one is copied to inflate it. */
  get memoryBytes(): number {
    return (this.#isLong ? 2 : 1) * this.#storedBytes + this.#rawBytes
  }

  hasRoomFor({ rawBytes }: BlockFrame): boolean {
    return (
      this.isEmpty || (this.#rawBytes + rawBytes <= GROUP_RAW_BYTES && !this.#isLong && rawBytes <= SHORT_RAW_BYTES_MAX)
    )
  }

  add(frame: BlockFrame): void {
    this.#frames.push(frame)
    this.#rawBytes += frame.rawBytes
    this.#storedBytes += frame.storedBytes
  }

  /** Its blocks, of which there must be some; it is empty again. */
  async inflate(fragments: ForeignFragments): Promise<ReceivedBlocks> {
    const blocks = this.#frames
    const rawBytes = this.#rawBytes
    const isLong = this.#isLong
    this.#frames = []
    this.#rawBytes = 0
    this.#storedBytes = 0
    return isLong
      ? { blocks, raw: await inflateLong(blocks[0], fragments) }
      : { blocks, raw: inflateShort(blocks, this.#memoryFor(rawBytes), fragments) }
  }

  #memoryFor(bytes: number): Uint8Array {
    return this.#bufferPool?.takeAny(bytes) ?? new Uint8Array(bytes)
  }
}

async function inflateLong(block: BlockFrame, fragments: ForeignFragments): Promise<Uint8Array> {
  const raw = await fragments.inflateLong(block.stored, block.rawBytes).catch(refuseBlock(block))
  checkRaw(raw, block)
  return raw
}

function inflateShort(blocks: readonly BlockFrame[], raw: Uint8Array, fragments: ForeignFragments): Uint8Array {
  let start = 0
  for (const block of blocks) {
    const rawBlock = raw.subarray(start, (start += block.rawBytes))
    try {
      fragments.inflateInto(rawBlock, block.stored)
    } catch (error) {
      refuseBlock(block)(error)
    }
    checkRaw(rawBlock, block)
  }
  return raw
}

function refuseBlock({ index, rawBytes }: BlockFrame): (error: unknown) => never {
  return (error) => {
    if (!isServiceError(error) || error.code !== 'corrupt_data') throw error
    const rule = `a block must be one DEFLATE fragment that is not final, ends on a byte boundary and inflates to the ${rawBytes} bytes of its header`
    throw invalidBlocks(rule, index, error)
  }
}

function checkRaw(raw: Uint8Array, { index, rawCrc32 }: BlockFrame): void {
  if (crc32(raw) !== rawCrc32) throw invalidBlocks('the inflated bytes do not match their CRC-32', index)
}
