import { constants, crc32 as crc32Of, deflateRawSync } from 'node:zlib'
import type { DeflatePool } from '../compression/deflate-pool.ts'
import { crc32Combine } from '../compression/crc32-combine.ts'
import type { Fragment, ReusedMemory, SelectionReadOptions } from '../object/selection.ts'
import { deflateFragments } from './compressor.ts'
import { BufferCoalescer } from './buffer-coalescer.ts'
import type { Pacer } from './pacer.ts'

/**
 * RFC 1952 section 2.3: magic, DEFLATE, no flags, no time, no extra flags, an unknown system. The same for every
 * answer.
 */
export const GZIP_HEADER: Uint8Array = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff)
/** The empty final block (RFC 1951 section 3.2.6), the CRC-32, and the length modulo 2^32. */
const END_BYTES = 10

/** The size of the header and the trailer of a gzip stream. */
export const GZIP_FRAME_BYTES: number = GZIP_HEADER.length + END_BYTES

/** The end of a gzip stream of `rawBytes` bytes with this CRC-32, after fragments that end on a byte boundary. */
export function gzipEnd(crc32: number, rawBytes: number): Uint8Array {
  const end = new Uint8Array(END_BYTES)
  const view = new DataView(end.buffer)
  view.setUint16(0, 0x0300)
  view.setUint32(2, crc32, true)
  view.setUint32(6, rawBytes, true)
  return end
}

/** A short text as one gzip stream, made on the calling thread: it takes less time than the trip to the thread pool. */
export function shortGzip(text: Uint8Array): Uint8Array {
  const deflated = deflateRawSync(text, { level: constants.Z_BEST_SPEED, finishFlush: constants.Z_FULL_FLUSH })
  return Buffer.concat([GZIP_HEADER, deflated, gzipEnd(crc32Of(text), text.length)])
}

export interface GzipOptions extends SelectionReadOptions {
  /** Compresses fragments that are not stored compressed. */
  readonly compressor: DeflatePool
  /** When it says that a heartbeat is due, nothing is held back. */
  readonly pacer?: Pacer
  /** The number of bytes that may be held back at the moment. */
  readonly roomBytes?: () => number
  /** Gets back the memory of lines that are compressed, and of fragments that are copied together. */
  readonly memory?: ReusedMemory | undefined
}

/**
 * One gzip stream (RFC 1952) spliced from fragments, in large buffers. The CRC-32 of the whole is combined from those
 * of the fragments.
 */
export async function* gzipFromFragments(
  fragments: AsyncIterable<readonly Fragment[]>,
  options: GzipOptions,
): AsyncGenerator<Uint8Array> {
  const { compressor: pool, signal, pacer, roomBytes, memory } = options
  const gatherer = new BufferCoalescer(roomBytes, memory)
  let checksum = 0
  let rawBytes = 0
  gatherer.add(GZIP_HEADER)
  for await (const batch of deflateFragments(fragments, { pool, signal, pacer, roomBytes, memory })) {
    for (const fragment of batch) {
      checksum = crc32Combine(checksum, fragment.crc32, fragment.rawBytes)
      rawBytes += fragment.rawBytes
      gatherer.add(fragment.deflated)
    }
    for (const buffer of pacer?.dueInMs === 0 ? gatherer.takeAll() : gatherer.take()) {
      yield buffer
      pacer?.sent()
    }
  }
  gatherer.add(gzipEnd(checksum, rawBytes))
  yield* gatherer.takeAll()
}

/** Lines as a fragment without compressing them: one stored block (RFC 1951 section 3.2.4), of 65,535 bytes at most. */
export function storedBlock(lines: Uint8Array): Uint8Array {
  const block = new Uint8Array(5 + lines.length)
  const view = new DataView(block.buffer)
  view.setUint16(1, lines.length, true)
  view.setUint16(3, ~lines.length, true)
  block.set(lines, 5)
  return block
}
