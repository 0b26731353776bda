import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { OrderedMap } from '../../adapters/memory/ordered-map.ts'
import { blobStoreConformance, recordStoreConformance } from '../../src/storage/conformance/index.ts'

describe('records in memory', () => {
  for (const { name, run } of recordStoreConformance(() => memoryBackend().records, { thorough: false }))
    test(name, run)
})

describe('blobs in memory', () => {
  for (const { name, run } of blobStoreConformance(() => memoryBackend().blobs, { thorough: false })) test(name, run)
})

test('the ordered map agrees with a sorted array through thousands of changes', () => {
  const map = new OrderedMap<number>()
  const oracle = new Map<string, number>()
  let seed = 12_345
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below
  for (let round = 0; round < 20_000; round++) {
    const entry = String(random(4_000))
    if (random(3) === 0) {
      map.delete(entry)
      oracle.delete(entry)
    } else {
      map.set(entry, round)
      oracle.set(entry, round)
    }
    assert.equal(map.get(entry), oracle.get(entry))
  }
  const sorted = [...oracle].toSorted(([a], [b]) => (a < b ? -1 : 1))
  assert.deepEqual(map.slice('', '~', Infinity, false), sorted)
  assert.deepEqual(map.slice('', '~', Infinity, true), sorted.toReversed())
  const inside = sorted.filter(([entry]) => entry >= '2' && entry < '35')
  assert.deepEqual(map.slice('2', '35', 1_000_000, false), inside)
  assert.deepEqual(map.slice('2', '35', 100, true), inside.toReversed().slice(0, 100))
})
