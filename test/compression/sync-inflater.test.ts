import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inflateBeginning, inflateFragmentsSync } from '../../src/compression/inflate.ts'
import { SyncInflater } from '../../src/compression/sync-inflater.ts'
import { fragment } from '../support/ready-blocks.ts'

const TEXT = Buffer.from(Array.from({ length: 2_000 }, (_, i) => `line ${i} of a block`).join('\n'))
const STORED = fragment(TEXT)
const FINAL = Buffer.of(3, 0)

test('the beginning of a fragment is inflated, however much of it is wanted', () => {
  for (const bytes of [0, 1, 1_000, TEXT.length - 1, TEXT.length]) {
    const output = Buffer.alloc(bytes)
    inflateBeginning(output, STORED, TEXT.length)
    assert.deepEqual(output, TEXT.subarray(0, bytes))
  }
})

test('a fragment that is too short, cut short or damaged is refused, and the next one inflates', () => {
  const damaged = Buffer.from(STORED)
  damaged[0] = 0xff
  const faulty: readonly (readonly [string, Uint8Array, number])[] = [
    ['shorter than is wanted', STORED, TEXT.length + 1],
    ['cut short', STORED.subarray(0, STORED.length / 2), TEXT.length],
    ['damaged at its first byte', damaged, TEXT.length],
    ['empty', new Uint8Array(0), 1],
  ]
  for (const [what, stored, bytes] of faulty) {
    assert.throws(() => inflateBeginning(Buffer.alloc(bytes), stored, bytes), { code: 'corrupt_data' }, what)
    assert.throws(() => inflateFragmentsSync(stored, bytes), { code: 'corrupt_data' }, what)
    assert.deepEqual(inflateFragmentsSync(STORED, TEXT.length), TEXT, `after one that is ${what}`)
  }
})

test('a fragment that inflates to more than is expected is refused as a whole', () => {
  for (const bytes of [0, 1, TEXT.length - 300, TEXT.length - 1])
    assert.throws(() => inflateFragmentsSync(STORED, bytes), { code: 'corrupt_data' }, String(bytes))
})

test('a whole stream must end with its suffix', () => {
  const inflater = new SyncInflater()
  const output = Buffer.alloc(TEXT.length)
  assert.equal(inflater.whole(output, STORED, FINAL, Buffer.alloc(1)), true)
  assert.equal(inflater.whole(output, STORED, FINAL.subarray(0, 1), Buffer.alloc(1)), false)
  assert.equal(inflater.whole(output, STORED, Buffer.of(3, 0, 0), Buffer.alloc(1)), false)
})
