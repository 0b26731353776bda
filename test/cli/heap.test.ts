import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { runInNewContext } from 'node:vm'
import { collectGarbage, growingPercent, youngGrowthFactor } from '../../src/cli/server/heap.ts'

const MEMORY_BYTES_MAX = 100_000_000

test('the more memory a server holds, the less its heap may grow', () => {
  const percents = [100, 245, 255, 265, 275, 285, 1_000].map((megabytes) =>
    growingPercent(megabytes * 1_000_000, MEMORY_BYTES_MAX),
  )
  assert.deepEqual([percents[0], percents.at(-1)], [100, 15])
  assert.deepEqual(
    percents,
    percents.toSorted((a, b) => b - a),
  )
  assert.ok(new Set(percents).size >= 4, percents.join(', '))
  assert.equal(growingPercent(300_000_000, 2 * MEMORY_BYTES_MAX), 100, 'a larger budget is no reason to collect more')
})

test('the space of young objects grows again after it has shrunk, and not without end', () => {
  assert.deepEqual(
    [1, 4, 8, 16, 32].map((megabytes) => youngGrowthFactor(megabytes * 1_048_576)),
    [2, 2, 2, 1, 1],
  )
})

/** Makes much that survives, as loading modules does, and prints how large the space of young objects is then. */
const GROW = `
const kept = []
for (let number = 0; number < 500_000; number++) kept.push({ number })
const spaces = process.getBuiltinModule('node:v8').getHeapSpaceStatistics()
console.log(spaces.find((space) => space.space_name === 'new_space').space_size)`

test('while a server loads its modules, the space of young objects keeps its size', async () => {
  const heapFile = new URL('../../src/cli/server/heap.ts', import.meta.url)
  const youngBytes = async (before: string): Promise<number> => {
    const script = `import { keepYoungSpace } from ${JSON.stringify(heapFile.href)}\n${before}${GROW}`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])
    return Number(stdout)
  }
  const [kept, grown] = [await youngBytes('keepYoungSpace()'), await youngBytes('')]
  assert.ok(kept * 2 <= grown && grown >= 8_388_608, `${kept} bytes kept, ${grown} without`)
})

test('what the start of a server left is collected before its first request', () => {
  let kept: unknown[] = []
  for (let number = 0; number < 500_000; number++) kept.push({ number })
  const before = process.memoryUsage().heapUsed
  kept = []
  collectGarbage()
  const freed = before - process.memoryUsage().heapUsed
  assert.ok(freed > 8_000_000, `${freed} bytes were freed`)
  assert.equal(runInNewContext('typeof gc'), 'undefined')
})
