import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { crc32, gunzipSync } from 'node:zlib'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { deflateFragments } from '../../src/emit/compressor.ts'
import { gzipEnd, gzipFromFragments, storedBlock } from '../../src/emit/gzip.ts'
import type { Fragment } from '../../src/object/selection.ts'
import { collected } from './made-selection.ts'

const signal = new AbortController().signal

async function* batchesOf(...batches: Fragment[][]): AsyncGenerator<Fragment[]> {
  yield* batches
}

test('the end of a gzip stream holds the length modulo 2^32', () => {
  for (const [rawBytes, isize] of [
    [0, 0],
    [5, 5],
    [2 ** 32 - 1, 2 ** 32 - 1],
    [2 ** 32, 0],
    [3 * 2 ** 32 + 77, 77],
  ]) {
    const end = gzipEnd(0xdeadbeef, rawBytes)
    const view = new DataView(end.buffer)
    assert.deepEqual(
      [end.length, view.getUint16(0), view.getUint32(2, true), view.getUint32(6, true)],
      [10, 0x0300, 0xdeadbeef, isize],
    )
  }
})

test('fragments of every kind form one member that gunzip accepts', async () => {
  const compressor = new DeflatePool({ level: 1, concurrency: 2 })
  const raws = [
    randomBytes(300_000),
    Buffer.from('a\t{}\n'),
    Buffer.alloc(500_000, 'b\t[1,2]\n'),
    Buffer.alloc(0),
    randomBytes(1),
  ]
  const fragments = await Promise.all(
    raws.map(async (lines, i): Promise<Fragment> => {
      if (i % 2 === 0) return { lines }
      return { deflated: await compressor.deflate(lines), rawBytes: lines.length, crc32: crc32(lines) }
    }),
  )
  const gzip = await collected(gzipFromFragments(batchesOf(fragments, [], fragments), { signal, compressor }))
  assert.ok(gunzipSync(gzip).equals(Buffer.concat([...raws, ...raws])))
  compressor.close()
})

test('a fragment with a wrong CRC-32 fails to inflate', async () => {
  const compressor = new DeflatePool({ level: 1, concurrency: 1 })
  const deflated = await compressor.deflate(Buffer.from('a\t{}\n'))
  const gzip = await collected(
    gzipFromFragments(batchesOf([{ deflated, rawBytes: 5, crc32: 1 }]), { signal, compressor }),
  )
  assert.throws(() => gunzipSync(gzip), { code: 'Z_DATA_ERROR' })
  compressor.close()
})

test('a stored block is a fragment', async () => {
  const lines = randomBytes(65_535)
  const fragment = { deflated: storedBlock(lines), rawBytes: lines.length, crc32: crc32(lines) }
  const compressor = new DeflatePool({ level: 1, concurrency: 1 })
  const gzip = await collected(gzipFromFragments(batchesOf([fragment, fragment]), { signal, compressor }))
  assert.ok(gunzipSync(gzip).equals(Buffer.concat([lines, lines])))
  compressor.close()
})

test('segments do not depend on the batches of lines, and few are in flight at once', async () => {
  const pool = new DeflatePool({ level: 1, concurrency: 2 })
  let underWay = 0
  let most = 0
  const deflate = pool.deflate.bind(pool)
  pool.deflate = async (raw) => {
    most = Math.max(most, ++underWay)
    try {
      return await deflate(raw)
    } finally {
      underWay--
    }
  }
  const text = Buffer.alloc(3_000_000, 'some\t{"text":1}\n')
  const pieces = (size: number): Fragment[] =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, i) => ({
      lines: text.subarray(i * size, (i + 1) * size),
    }))
  const sizes: number[][] = []
  for (const size of [10_000, 131_072, 3_000_000]) {
    const got: number[] = []
    for await (const batch of deflateFragments(batchesOf(pieces(size)), { pool, signal }))
      got.push(...batch.map(({ rawBytes }) => rawBytes))
    sizes.push(got)
  }
  assert.deepEqual(sizes[1], sizes[0])
  assert.deepEqual(sizes[2], sizes[0])
  assert.equal(most, 4)
  pool.close()
})
