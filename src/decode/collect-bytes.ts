import type { MemoryLease, TooLargeCode } from '../memory/memory-lease.ts'
import { GrowingBuffer } from './growing-buffer.ts'

/** How much of a body a connection buffers before anything reads it. */
const CONNECTION_BYTES = 65_536

export interface CollectOptions {
  /** The declared number of bytes; 0 without a declaration. */
  readonly expectedBytes?: number | undefined
  readonly bytesMax: number
  readonly memory: Pick<MemoryLease, 'hold'> | undefined
  readonly code: TooLargeCode
}

/**
 * All chunks in one buffer, which the caller may write into. Memory is leased before it is filled: a buffer of declared
 * size costs none before (the system hands out pages as they are written), and a growing one exists twice while it is
 * copied. The caller bounds the input.
 */
export async function collectBytes(chunks: AsyncIterable<Uint8Array>, options: CollectOptions): Promise<Uint8Array> {
  const { memory, code, ...sizes } = options
  const buffer = new GrowingBuffer(sizes)
  const isDeclared = buffer.capacityBytes > 0
  await memory?.hold(CONNECTION_BYTES, code)
  for await (const chunk of chunks) {
    await memory?.hold(buffer.growthFor(chunk.length) + (isDeclared ? chunk.length : 0), code)
    buffer.add(chunk)
  }
  return buffer.take()
}
