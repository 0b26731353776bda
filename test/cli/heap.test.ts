import assert from 'node:assert/strict'
import { test } from 'node:test'
import { growingPercent, youngGrowthFactor } from '../../src/cli/server/heap.ts'

const MEMORY_BYTES_MAX = 100_000_000

test('the more memory a server holds, the less its heap may grow', () => {
  const percents = [100, 200, 220, 240, 260, 280, 1_000].map((megabytes) =>
    growingPercent(megabytes * 1_000_000, MEMORY_BYTES_MAX),
  )
  assert.deepEqual([percents[0], percents.at(-1)], [200, 15])
  assert.deepEqual(
    percents,
    percents.toSorted((a, b) => b - a),
  )
  assert.ok(new Set(percents).size >= 4, percents.join(', '))
  assert.equal(growingPercent(280_000_000, 2 * MEMORY_BYTES_MAX), 200, 'a larger budget is no reason to collect more')
})

test('the space of young objects grows again after it has shrunk, and not without end', () => {
  assert.deepEqual(
    [1, 4, 8, 16, 32].map((megabytes) => youngGrowthFactor(megabytes * 1_048_576)),
    [2, 2, 2, 1, 1],
  )
})
