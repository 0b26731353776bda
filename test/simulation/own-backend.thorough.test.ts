import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { levelBackend } from '../../adapters/level/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { simulate, type Simulation } from '../../src/simulation/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { folderInMemory } from '../support/folder.ts'

/** The first run below `seeds` that breaks something. Each run has a storage of its own, which outlives its closing. */
async function firstBroken(seeds: number, storageOf: (seed: number) => () => StorageBackend): Promise<string> {
  for (let seed = 0; seed < seeds; seed++) {
    const { violation } = await simulate({ seed, backend: storageOf(seed) })
    if (violation !== undefined) return `seed ${seed}: ${violation}`
  }
  return 'nothing is broken'
}

type InsertMany = StorageBackend['records']['insertMany']

/** In memory, with another `insertMany`, where one is given. */
function inMemory(changed?: (inner: StorageBackend['records']) => InsertMany) {
  return (): (() => StorageBackend) => {
    const { records, blobs } = memoryBackend()
    const insertMany = changed?.(records) ?? ((...call: Parameters<InsertMany>) => records.insertMany(...call))
    return () => ({
      records: {
        limits: records.limits,
        getMany: (keys, options) => records.getMany(keys, options),
        range: (bounds, options) => records.range(bounds, options),
        insertMany,
        commit: (change, options) => records.commit(change, options),
        close: () => Promise.resolve(),
      },
      blobs,
      close: () => Promise.resolve(),
    })
  }
}

test('a storage in memory bears the workload', async () => {
  assert.equal(await firstBroken(10, inMemory()), 'nothing is broken')
})

test('a storage on the disk bears the workload, closed and opened again', async (t) => {
  const folder = folderInMemory(t)
  let opened = 0
  const onDisk = (seed: number) => (): StorageBackend => {
    opened++
    return levelBackend({ path: join(folder, `seed ${seed}`) })
  }
  assert.equal(await firstBroken(3, onDisk), 'nothing is broken')
  assert.ok(opened > 6)
})

test('a storage that overwrites existing values is detected', async () => {
  const overwriting = inMemory((inner) => async (entries) => {
    for (const entry of entries) await inner.commit({ put: [entry] })
    return entries.map(() => undefined)
  })
  assert.match(await firstBroken(50, overwriting), /^seed \d+: /)
})

test('a run over a storage of its own goes the same way again', async () => {
  const run = (seed: number): Promise<Simulation> => simulate({ seed, backend: inMemory()() })
  for (const seed of [3, 11]) assert.deepEqual(await run(seed), await run(seed))
})
