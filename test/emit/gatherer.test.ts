import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { test } from 'node:test'
import { BufferCoalescer } from '../../src/emit/buffer-coalescer.ts'

test('pieces of every size leave in order, in large buffers', () => {
  const gatherer = new BufferCoalescer()
  const pieces = Array.from({ length: 3_000 }, (_, i) =>
    randomBytes(i % 50 === 0 ? randomInt(0, 400_000) : randomInt(0, 9_000)),
  )
  const out: Uint8Array[] = []
  for (const piece of pieces) {
    gatherer.add(piece)
    out.push(...gatherer.take())
  }
  out.push(...gatherer.takeAll())
  assert.ok(Buffer.concat(out).equals(Buffer.concat(pieces)))
  assert.ok(out.length < 300, `${out.length} buffers`)
  assert.deepEqual(gatherer.takeAll(), [])
})

test('a large piece passes at once and without a copy, after the small ones before it', () => {
  const gatherer = new BufferCoalescer()
  const large = new Uint8Array(200_000)
  gatherer.add(Uint8Array.of(1))
  gatherer.add(large)
  const [small, same] = gatherer.take()
  assert.deepEqual([...small], [1])
  assert.equal(same.buffer, large.buffer)
  assert.equal(same.length, large.length)
})

test('adjacent memory is joined without a copy, up to about 1 MB', () => {
  const gatherer = new BufferCoalescer()
  const memory = new Uint8Array(3_000_000).fill(7)
  for (let at = 0; at < memory.length; at += 6_000) gatherer.add(memory.subarray(at, at + 6_000))
  const runs = gatherer.takeAll()
  assert.equal(runs.length, 3)
  for (const run of runs) assert.equal(run.buffer, memory.buffer)
  assert.equal(
    runs.reduce((sum, run) => sum + run.length, 0),
    memory.length,
  )
})

test('pieces with a gap or in the wrong order are not joined', () => {
  const gatherer = new BufferCoalescer()
  const memory = Uint8Array.from({ length: 100 }, (_, i) => i)
  for (const [start, end] of [
    [10, 20],
    [21, 30],
    [5, 10],
    [30, 40],
    [40, 40],
    [40, 42],
  ])
    gatherer.add(memory.subarray(start, end))
  const expected = [memory.subarray(10, 20), memory.subarray(21, 30), memory.subarray(5, 10), memory.subarray(30, 42)]
  assert.ok(Buffer.concat(gatherer.takeAll()).equals(Buffer.concat(expected)))
})

test('a piece that fills half of the room is not held back for the next one', () => {
  const gatherer = new BufferCoalescer(() => 40_000)
  const piece = new Uint8Array(20_000)
  gatherer.add(piece)
  const [same] = gatherer.take()
  assert.equal(same.buffer, piece.buffer)
  gatherer.add(new Uint8Array(19_000))
  assert.deepEqual(gatherer.take(), [])
})
