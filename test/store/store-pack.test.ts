import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBlobs } from '../../adapters/memory/index.ts'
import { storePack } from '../../src/store/pack/store-pack.ts'

/** Pieces that all lie in one buffer: each is gone when the next is asked for. */
async function* overwritten(pieces: number, pieceBytes: number): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(pieceBytes)
  for (let i = 0; i < pieces; i++) yield buffer.fill(i + 1)
}

function expected(pieces: number, pieceBytes: number): Buffer {
  return Buffer.concat(Array.from({ length: pieces }, (_, i) => Buffer.alloc(pieceBytes, i + 1)))
}

test('a pack is stored from pieces that share memory, beside its record or in a blob', async (t) => {
  const blobs = memoryBlobs()
  t.after(() => blobs.close())
  const { signal } = new AbortController()
  const inline = await storePack(blobs, 'small', overwritten(5, 100), signal)
  assert.deepEqual(inline, expected(5, 100))
  assert.equal(await storePack(blobs, 'large', overwritten(60, 20_000), signal), undefined)
  const stored = await blobs.read('large', 0, 60 * 20_000)
  assert.ok(Buffer.from(stored).equals(expected(60, 20_000)))
})
