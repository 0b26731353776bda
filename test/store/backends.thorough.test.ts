import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { createPackStore, type PackStore } from '../../src/store/pack-store.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { imageOf, putRecord } from './failures.ts'
import { Oracle, randomGraph, referTo, seeded, shuffled, splitRandomly } from './graphs.ts'
import { assertSound, collected, download, heldOf, type Made, put } from './support.ts'

const random = seeded(55)
const GRAPH: readonly Made[] = randomGraph(random, {
  objects: 1_300,
  paddingBytes: 500,
  isCyclic: true,
  missingPercent: 3,
  claimPercent: 3,
})
const ROOT: string = GRAPH[0].id
const oracle: Oracle = new Oracle()
oracle.add(GRAPH)

async function opened(backend: StorageBackend): Promise<PackStore> {
  const store = createPackStore({ backend })
  await store.ready()
  return store
}

async function assertThere(store: PackStore): Promise<void> {
  const { ids, missing } = oracle.closure(ROOT)
  for (let pass = 0; pass < 2; pass++) {
    const got = await download(store, 'demo', ROOT)
    assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids))
    assert.deepEqual(got?.missing, missing)
    await store.idle()
  }
}

async function useStore(open: () => StorageBackend, isLasting: boolean): Promise<void> {
  let store = await opened(open())
  const uploads = splitRandomly(random, shuffled(random, GRAPH), 6)
  await Promise.all(uploads.map((objects) => put(store, 'demo', [...objects, GRAPH[3]])))
  assert.equal((await put(store, 'demo', GRAPH)).inserted, 0)
  await put(store, 'gone', GRAPH.slice(0, 50))
  await assertThere(store)
  await store.remove('gone')
  await put(store, 'gone', [{ id: 'fresh', children: referTo([GRAPH[1].id]) }])
  assert.deepEqual(await heldOf(store, 'gone', [GRAPH[1].id, 'fresh']), new Set(['fresh']))
  await store.idle()
  await store.close()
  if (!isLasting) return
  store = await opened(open())
  await assertThere(store)
  await store.close()
  const bare = open()
  await bare.ready?.()
  await assertSound(bare)
  for (const { key } of (await imageOf(bare)).records)
    if (key[0] === 'o'.charCodeAt(0) || key[0] === 'h'.charCodeAt(0)) await putRecord(bare, key, undefined)
  assert.deepEqual(
    (await collected(reindexStore(bare))).filter(({ severity }) => severity === 'damage'),
    [],
  )
  await assertSound(bare)
  await bare.close()
  store = await opened(open())
  await assertThere(store)
  assert.deepEqual(await heldOf(store, 'gone', [GRAPH[1].id, 'fresh']), new Set(['fresh']))
  await store.close()
}

test('a store over memory works', () => useStore(memoryBackend, false))

for (const [name, backend] of [
  ['LevelDB', levelBackend],
  ['files', filesystemBackend],
] as const) {
  test(`a store over ${name} can be opened, checked and rebuilt`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stowage-store-'))
    try {
      await useStore(() => backend({ path: join(folder, 'data') }), true)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}
