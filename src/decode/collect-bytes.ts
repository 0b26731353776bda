import type { MemoryLease, TooLargeCode } from '../memory/memory-lease.ts'
import { GrowingBuffer } from './growing-buffer.ts'

/** What a connection buffers of a body before anybody asks for it. */
const CONNECTION_BYTES = 65_536

export interface CollectOptions {
  /** Bytes as they were declared; 0 where nothing was. */
  readonly expectedBytes?: number | undefined
  readonly bytesMax: number
  readonly memory: Pick<MemoryLease, 'hold'> | undefined
  readonly code: TooLargeCode
}

/**
 * All chunks in one buffer, which the caller may write into. Memory is leased before it is filled: a buffer whose size was declared costs none before
 * (the system hands out its pages as they are written to), and one that grows is there twice while it is copied. Who calls bounds what comes.
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
