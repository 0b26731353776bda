import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { inflateRawSync } from 'node:zlib'
import { DeflatePool, deflatedBytesMax } from '../../src/compression/deflate-pool.ts'
import { inflateFragments, inflateFragmentsSync } from '../../src/compression/inflate.ts'

function words(bytes: number, seed: number): Uint8Array {
  const text = Array.from({ length: Math.ceil(bytes / 12) }, (_, i) => `"v${(i * seed) % 9973}":${i}`).join(',')
  return Buffer.from(text.padEnd(bytes, ' ').slice(0, bytes))
}

/** Whole by itself: inflates with nothing before it, and with the final block appended ends cleanly. */
function inflatedAlone(fragment: Uint8Array): Uint8Array {
  return inflateRawSync(Buffer.concat([fragment, Uint8Array.of(3, 0)]))
}

test('many concurrent inputs each become their own fragment, in any order', async () => {
  const pool = new DeflatePool({ level: 1, concurrency: 3 })
  const inputs = Array.from({ length: 40 }, (_, i) =>
    i % 7 === 0 ? randomBytes(i * 9_000) : words(1 + i * 3_000, i + 1),
  )
  const fragments = await Promise.all(inputs.map((raw) => pool.deflate(raw)))
  for (const [i, fragment] of fragments.entries())
    assert.deepEqual(Buffer.from(inflatedAlone(fragment)), Buffer.from(inputs[i]), `input ${i}`)
  const both = Buffer.concat([fragments[3], fragments[11]])
  assert.deepEqual(Buffer.from(inflatedAlone(both)), Buffer.concat([inputs[3], inputs[11]]))
  pool.close()
})

test('the same input gives the same bytes, regardless of earlier inputs of the stream', async () => {
  const pool = new DeflatePool({ level: 6, concurrency: 1 })
  const raw = words(16_384, 5)
  const first = Buffer.from(await pool.deflate(raw))
  await pool.deflate(words(50_000, 5))
  assert.deepEqual(Buffer.from(await pool.deflate(raw)), first)
  pool.close()
})

test('inputs larger than the output buffers and empty inputs are compressed', async () => {
  const pool = new DeflatePool({ level: 1, concurrency: 2 })
  const raw = randomBytes(5_000_000)
  const fragment = await pool.deflate(raw)
  assert.ok(fragment.length >= raw.length)
  assert.deepEqual(inflatedAlone(fragment), raw)
  assert.equal((await pool.deflate(new Uint8Array(0))).length, 0)
  pool.close()
})

test('output lies in the memory of the caller if it fits there, and never where other output is', async () => {
  const pool = new DeflatePool({ level: 1, concurrency: 1 })
  const made: { raw: Uint8Array; into: Uint8Array | undefined; fragment: Uint8Array }[] = []
  for (let i = 0; i < 60; i++) {
    const raw = i % 2 === 0 ? randomBytes(16_384) : words(16_384, i)
    const sizes = [undefined, deflatedBytesMax(raw.length), 1_000]
    const size = sizes[i % sizes.length]
    const into = size === undefined ? undefined : new Uint8Array(size + 8).subarray(8)
    made.push({ raw, into, fragment: await pool.deflate(raw, into) })
  }
  for (const [i, { raw, into, fragment }] of made.entries()) {
    assert.deepEqual(Buffer.from(inflatedAlone(fragment)), Buffer.from(raw), `input ${i}`)
    if (into === undefined || into.length === 1_000) continue
    assert.equal(fragment.buffer, into.buffer)
    assert.equal(fragment.byteOffset, into.byteOffset)
  }
  pool.close()
})

test('close rejects running, queued and later calls', async () => {
  const pool = new DeflatePool({ level: 9, concurrency: 1 })
  const waiting = [pool.deflate(words(500_000, 3)), pool.deflate(words(500_000, 4)), pool.deflate(words(10, 1))]
  const outcomes = Promise.allSettled(waiting)
  pool.close()
  for (const outcome of await outcomes) {
    assert.equal(outcome.status, 'rejected')
    assert.equal(outcome.reason.code, 'closing')
  }
  await assert.rejects(pool.deflate(words(10, 1)), { code: 'closing' })
  pool.close()
})

test('a level, a window or a concurrency out of range is refused', () => {
  assert.throws(() => new DeflatePool({ level: 10, concurrency: 1 }), RangeError)
  assert.throws(() => new DeflatePool({ level: 1, concurrency: 0 }), RangeError)
  assert.throws(() => new DeflatePool({ level: 1, windowBits: 8 }), RangeError)
  assert.throws(() => new DeflatePool({ level: 1, windowBits: 16 }), RangeError)
})

test('an input refers back no further than the window, and inflates with any', async () => {
  const period = randomBytes(1_500)
  const raw = Buffer.concat(Array<Uint8Array>(10).fill(period))
  const sizes: number[] = []
  for (const windowBits of [15, 14, 10]) {
    const pool = new DeflatePool({ level: 6, concurrency: 1, windowBits })
    const deflated = await pool.deflate(raw)
    assert.deepEqual(Buffer.from(await inflateFragments(deflated, raw.length)), raw)
    sizes.push(deflated.length)
    pool.close()
  }
  assert.ok(sizes[0] < 2 * period.length && sizes[1] < 2 * period.length && sizes[2] > raw.length)
})

test('inflating returns exactly the bytes of one fragment, several and none', async () => {
  const pool = new DeflatePool({ level: 6, concurrency: 2 })
  const inputs = [words(16_384, 1), words(63, 2), randomBytes(70_000), words(1, 1)]
  const fragments = await Promise.all(inputs.map((raw) => pool.deflate(raw)))
  for (const [i, fragment] of fragments.entries()) {
    assert.deepEqual(Buffer.from(await inflateFragments(fragment, inputs[i].length)), Buffer.from(inputs[i]))
    assert.deepEqual(Buffer.from(inflateFragmentsSync(fragment, inputs[i].length)), Buffer.from(inputs[i]))
  }
  const all = Buffer.concat(inputs)
  assert.deepEqual(Buffer.from(await inflateFragments(Buffer.concat(fragments), all.length)), all)
  assert.equal((await inflateFragments(new Uint8Array(0), 0)).length, 0)
  pool.close()
})

test('inflating refuses a wrong size, cut or foreign bytes, and a stream that ends too early', async () => {
  const pool = new DeflatePool({ level: 6, concurrency: 1 })
  const raw = words(16_384, 1)
  const fragment = Buffer.from(await pool.deflate(raw))
  pool.close()
  const bad: [string, Uint8Array, number][] = [
    ['one byte too few expected', fragment, raw.length - 1],
    ['one byte too many expected', fragment, raw.length + 1],
    ['nothing expected', fragment, 0],
    ['cut', fragment.subarray(0, -6), raw.length],
    ['cut inside the flush', fragment.subarray(0, -1), raw.length],
    ['garbage', randomBytes(500).fill(0xff, 0, 2), 16_384],
    ['empty', new Uint8Array(0), 5],
    ['a final block in the middle', Buffer.concat([fragment, Uint8Array.of(3, 0), fragment]), raw.length],
  ]
  for (const [what, stored, rawBytes] of bad) {
    await assert.rejects(inflateFragments(stored, rawBytes), { code: 'corrupt_data' }, what)
    assert.throws(() => inflateFragmentsSync(stored, rawBytes), { code: 'corrupt_data' }, what)
  }
})
