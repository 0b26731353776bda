import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BufferPool } from '../../src/memory/buffer-pool.ts'

const READ_BYTES = 200_000

test('memory that was given back is lent again, for reads of about its size', () => {
  const buffers = new BufferPool(1_000_000)
  const first = taken(buffers, READ_BYTES)
  assert.equal(first.length, READ_BYTES)
  buffers.giveBack(first)
  const second = taken(buffers, READ_BYTES - 10_000)
  assert.equal(second.buffer, first.buffer)
  assert.equal(second.length, READ_BYTES - 10_000)
  buffers.giveBack(second)
  assert.notEqual(taken(buffers, 2 * READ_BYTES).buffer, first.buffer, 'too small')
  assert.notEqual(taken(buffers, READ_BYTES / 2).buffer, first.buffer, 'half of it would be empty')
  assert.equal(taken(buffers, READ_BYTES).buffer, first.buffer)
})

test('large memory suits what is a little larger, too', () => {
  const buffers = new BufferPool(10_000_000)
  const first = taken(buffers, 6_430_000)
  buffers.giveBack(first)
  assert.equal(taken(buffers, 6_470_000).buffer, first.buffer)
  assert.ok(first.buffer.byteLength < 1.07 * 6_430_000, `${first.buffer.byteLength} bytes`)
})

test('memory is lent again only when all parts of it were given back', () => {
  const buffers = new BufferPool(1_000_000)
  const lent = taken(buffers, READ_BYTES)
  buffers.giveBack(lent.subarray(100_000))
  assert.notEqual(taken(buffers, READ_BYTES).buffer, lent.buffer)
  buffers.giveBack(lent.subarray(0, 100_000))
  assert.equal(taken(buffers, READ_BYTES).buffer, lent.buffer)
})

test('memory that was given back once is not lent twice, nor is memory of others', () => {
  const buffers = new BufferPool(1_000_000)
  const lent = taken(buffers, READ_BYTES)
  buffers.giveBack(lent)
  buffers.giveBack(lent)
  buffers.giveBack(new Uint8Array(READ_BYTES))
  assert.equal(taken(buffers, READ_BYTES).buffer, lent.buffer)
  assert.notEqual(taken(buffers, READ_BYTES).buffer, lent.buffer)
  assert.equal(buffers.idleBytes, 0)
})

test('what is kept for the next reads is bounded, and small reads get nothing', () => {
  const buffers = new BufferPool(1_000_000)
  const lent = Array.from({ length: 20 }, () => taken(buffers, READ_BYTES))
  for (const bytes of lent) buffers.giveBack(bytes)
  assert.ok(buffers.idleBytes > 500_000 && buffers.idleBytes <= 1_000_000, `${buffers.idleBytes} bytes`)
  assert.equal(buffers.take(1_000), undefined)
})

test('of what nobody wanted again within seconds, less is kept', () => {
  let nowMs = 0
  const environment = { monotonicMs: () => nowMs }
  const buffers = new BufferPool({ bytesMax: 4 * READ_BYTES * 1.4, lastingBytesMax: 2 * READ_BYTES * 1.4, environment })
  const lent = Array.from({ length: 6 }, () => taken(buffers, READ_BYTES))
  const [{ buffer }] = lent
  for (const bytes of lent.slice(1)) buffers.giveBack(bytes)
  assert.equal(buffers.idleBytes, 4 * buffer.byteLength)
  nowMs = 4_000
  buffers.giveBack(taken(buffers, READ_BYTES))
  assert.equal(buffers.idleBytes, 4 * buffer.byteLength)
  nowMs = 8_000
  const used = taken(buffers, READ_BYTES)
  buffers.giveBack(used)
  assert.equal(buffers.idleBytes, 2 * buffer.byteLength)
  assert.equal(taken(buffers, READ_BYTES).buffer, used.buffer, 'the one that was used last stays')
})

function taken(buffers: BufferPool, sizeBytes: number): Uint8Array {
  const bytes = buffers.take(sizeBytes)
  assert.ok(bytes !== undefined)
  return bytes
}
