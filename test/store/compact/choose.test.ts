import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choosePacks, MERGED_OBJECTS_MAX, type PackSize, SOURCES_MAX } from '../../../src/store/compact/choose.ts'

function packOf(sequence: number, liveBytes: number, more: Partial<PackSize> = {}): PackSize {
  return { sequence, objects: 10, liveObjects: 10, packBytes: liveBytes, liveBytes, memoryBytes: 10, ...more }
}

test('packs whose sizes form a geometric progression stay', () => {
  assert.deepEqual(choosePacks([packOf(1, 800), packOf(2, 400), packOf(3, 200), packOf(4, 100)]), [])
  assert.deepEqual(choosePacks([packOf(1, 800)]), [])
  assert.deepEqual(choosePacks([]), [])
})

test('the fewest small packs that restore the progression are merged, and larger ones stay', () => {
  const packs = [packOf(1, 100_000), packOf(2, 1_000), packOf(3, 10), packOf(4, 12)]
  assert.deepEqual(choosePacks(packs), [3, 4])
  assert.deepEqual(choosePacks([...packs, packOf(5, 600)]), [2, 3, 4, 5], 'what is merged would break it again')
})

test('packs of about one size that do not fit into one are merged in the order of their uploads', () => {
  const packs = Array.from({ length: 20 }, (_, i) =>
    packOf(i + 1, 1_000 + ((i * 7) % 20), { objects: 3_250, liveObjects: 3_250 }),
  )
  assert.deepEqual(choosePacks(packs), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

test('each object is rewritten a logarithmic number of times', () => {
  const sizes = new Map<number, PackSize>()
  let rewritten = 0
  let most = 0
  for (let sequence = 1; sequence <= 2_000; sequence++) {
    sizes.set(sequence * 2, packOf(sequence * 2, 100, { objects: 1, liveObjects: 1 }))
    const chosen = choosePacks([...sizes.values()])
    if (chosen.length > 0) {
      const bytes = chosen.reduce((sum, number) => sum + (sizes.get(number)?.liveBytes ?? 0), 0)
      for (const number of chosen) sizes.delete(number)
      sizes.set(sequence * 2 + 1, packOf(sequence * 2 + 1, bytes, { objects: 1, liveObjects: 1 }))
      rewritten += bytes
    }
    most = Math.max(most, sizes.size)
  }
  assert.ok(most <= Math.ceil(Math.log2(2_000)) + 1, `${most} packs`)
  assert.ok(rewritten / 100 / 2_000 <= 2 * Math.log2(2_000), `${rewritten / 100 / 2_000} times each`)
})

test('a pack of which more than half is dead is rewritten, alone if need be', () => {
  assert.deepEqual(choosePacks([packOf(1, 40, { packBytes: 100, liveObjects: 4 })]), [1])
  assert.deepEqual(choosePacks([packOf(1, 60, { packBytes: 100, liveObjects: 6 })]), [])
  assert.deepEqual(choosePacks([packOf(1, 0, { objects: 0, liveObjects: 0, packBytes: 300 })]), [], 'an empty one')
})

test('a mostly dead pack that is too large for a merge is rewritten alone', () => {
  const huge = { objects: 10 * MERGED_OBJECTS_MAX, liveObjects: 2 * MERGED_OBJECTS_MAX }
  assert.deepEqual(choosePacks([packOf(1, 200, { ...huge, packBytes: 1_000 }), packOf(2, 900, huge)]), [1])
})

test('a merged pack stays within its limits', () => {
  const half = MERGED_OBJECTS_MAX / 2
  const large = [1, 2, 3].map((sequence) => packOf(sequence, 1_000, { objects: half, liveObjects: half }))
  assert.equal(choosePacks(large).length, 2)
  assert.equal(choosePacks(large, { all: true }).length, 2)
  const full = [1, 2].map((sequence) => packOf(sequence, 1_000, { objects: half + 1, liveObjects: half + 1 }))
  assert.deepEqual(choosePacks(full), [])
  const many = Array.from({ length: 2 * SOURCES_MAX }, (_, i) => packOf(i + 1, 100))
  assert.equal(choosePacks(many).length, SOURCES_MAX)
})

test('all packs are merged on request, but a single pack only if some of its objects are dead', () => {
  const packs = [packOf(1, 800), packOf(2, 400), packOf(3, 200)]
  assert.deepEqual(choosePacks(packs, { all: true }), [1, 2, 3])
  assert.deepEqual(choosePacks([packOf(1, 800)], { all: true }), [])
  assert.deepEqual(choosePacks([packOf(1, 700, { packBytes: 800, liveObjects: 9 })], { all: true }), [1])
})

test('a merge takes no more packs than its memory allows', () => {
  const packs = Array.from({ length: 9 }, (_, i) => packOf(i + 1, 100))
  assert.deepEqual(choosePacks(packs, { memoryBytesMax: 45 }), [1, 2, 3, 4])
  assert.deepEqual(choosePacks(packs, { memoryBytesMax: 45, all: true }), [1, 2, 3, 4])
  assert.deepEqual(choosePacks(packs, { memoryBytesMax: 19 }), [], 'no two of them fit')
  assert.deepEqual(choosePacks(packs, { memoryBytesMax: 19, all: true }), [])
  const large = packOf(1, 100, { memoryBytes: 40 })
  assert.deepEqual(choosePacks([large, ...packs.slice(1)], { memoryBytesMax: 45, all: true }), [2, 3, 4, 5])
})
