import type { TestContext } from 'node:test'
import { BufferPool } from '../../src/memory/buffer-pool.ts'

/** Counts what all buffers for reads lend from here on, and how much of it did not come back. */
export function countLent(t: TestContext): { readonly bytes: number; readonly outBytes: number } {
  const counted = { bytes: 0, outBytes: 0 }
  const lent = new WeakSet<ArrayBufferLike>()
  const { take, giveBack } = BufferPool.prototype
  t.mock.method(BufferPool.prototype, 'take', function (this: BufferPool, sizeBytes: number) {
    const memory = take.call(this, sizeBytes)
    if (memory === undefined) return undefined
    lent.add(memory.buffer)
    counted.bytes += sizeBytes
    counted.outBytes += sizeBytes
    return memory
  })
  t.mock.method(BufferPool.prototype, 'giveBack', function (this: BufferPool, bytes: Uint8Array) {
    if (lent.has(bytes.buffer)) counted.outBytes -= bytes.length
    giveBack.call(this, bytes)
  })
  return counted
}
