import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { keyBounds, keyParts } from '../../../src/store/records/keys.ts'
import { node, OLDER_THAN, openCollecting, UNDO } from '../collect/collecting.ts'
import { gate, hooked } from '../failures.ts'
import { assertSound, download, never, openStore, put } from '../support.ts'
import { assertHolds, compact, history, PROJECT, uploaded } from './support.ts'

/** Closures of more than 1,000 objects have plans in storage. */
const LARGE = history({ versions: 6, objects: 1_200, changed: 12 })
const NEWEST = 'root-6'

async function plannedRoots({ records }: StorageBackend, projectId = PROJECT): Promise<string[]> {
  const roots: string[] = []
  for await (const entries of records.range(keyBounds('plan', projectId)))
    for (const { key } of entries) roots.push(keyParts(key)[2])
  return roots.sort()
}

/** A store over the same storage, and the plans that it makes. */
async function watched(
  backend: StorageBackend,
): Promise<Awaited<ReturnType<typeof openStore>> & { plans: () => number }> {
  let made = 0
  const opened = await openStore(
    hooked(backend, (call, name, work) => {
      if (call === 'put' && name.includes('/plan-')) made++
      return work()
    }),
  )
  return { ...opened, plans: () => made }
}

/** Downloads every version, so that each has a plan. */
async function planAll(opened: Awaited<ReturnType<typeof openStore>>): Promise<void> {
  for (const { rootObjectId } of LARGE.roots) await download(opened.store, PROJECT, rootObjectId)
  await opened.store.idle()
}

test('a compaction ends with a plan for the newest version, and for older ones if they are small', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(LARGE, backend)
  await planAll(opened)
  assert.equal((await plannedRoots(backend)).length, LARGE.roots.length)
  const report = await compact(opened.store, LARGE, { all: true })
  assert.equal(report.packsAfter, 1)
  const kept = await plannedRoots(backend)
  assert.ok(kept.includes(NEWEST))
  assert.ok(kept.length < LARGE.roots.length, 'plans of older versions take at most a part of what the packs take')
  const reader = await watched(backend)
  assert.equal((await download(reader.store, PROJECT, NEWEST))?.isPlanned, true)
  await reader.store.idle()
  assert.equal(reader.plans(), 0)
  await assertHolds(reader.store, LARGE)
  await assertSound(backend)
  await opened.store.close()
  await reader.store.close()
})

test('every server answers from the existing plan until a new one is made', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(LARGE, backend)
  await planAll(opened)
  const other = await watched(backend)
  assert.equal((await download(other.store, PROJECT, NEWEST))?.isPlanned, true)
  const making = gate()
  const replanning = gate()
  const merging = await openStore(
    hooked(backend, async (call, name, work) => {
      if (call === 'put' && name.includes('/plan-')) {
        replanning.open()
        await making.opened
      }
      return work()
    }),
  )
  const compacting = compact(merging.store, LARGE, { all: true })
  await replanning.opened
  for (const { store } of [opened, other]) {
    const got = await download(store, PROJECT, NEWEST)
    assert.equal(got?.isPlanned, true)
    assert.deepEqual(got?.ids, LARGE.oracle.closure(NEWEST).ids)
  }
  assert.equal(other.plans(), 0)
  making.open()
  await compacting
  await assertHolds(other.store, LARGE, { closures: 2 })
  const digests = await Promise.all([opened, other].map(({ store }) => download(store, PROJECT, NEWEST)))
  assert.equal(digests[0]?.digest, digests[1]?.digest, 'both know the closure as it lies now')
  assert.equal(digests[0]?.isPlanned, true)
  for (const { store } of [opened, other, merging]) await store.close()
})

test('plans that name no merged pack stay as they are', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(history({ versions: 1, objects: 1_200, changed: 0 }), backend)
  await download(opened.store, PROJECT, 'root-1')
  await opened.store.idle()
  for (const name of ['a', 'b', 'c']) await put(opened.store, PROJECT, [{ id: name }])
  const before = await plannedRoots(backend)
  const reader = await watched(backend)
  const report = await compact(opened.store, { roots: [] })
  assert.equal(report.packsAfter, 2, 'the large pack stays')
  assert.deepEqual(await plannedRoots(backend), before)
  assert.equal((await download(reader.store, PROJECT, 'root-1'))?.isPlanned, true)
  assert.equal(reader.plans(), 0)
  await opened.store.close()
  await reader.store.close()
})

test('the plan of a root that was freed goes with the next compaction, even if it names no merged pack', async () => {
  const backend = memoryBackend()
  const collecting = await openCollecting(1, backend)
  const { store, roots, readRoots } = collecting
  await put(store, 'p', [node('kept')])
  roots.add('kept')
  // The packs are so small that the plan has copies of all of them.
  const groups = Array.from({ length: 12 }, (_, group) => {
    const leaves = Array.from({ length: 100 }, (_, at) => node(`leaf-${group}-${at}`))
    const children = leaves.map(({ id }) => id)
    return { id: `group-${group}`, objects: [...leaves, node(`group-${group}`, children)] }
  })
  for (const { objects } of groups) await put(store, 'p', objects)
  await put(store, 'p', [node('older', ['leaf-0-0'])])
  const root = node(
    'root',
    groups.map(({ id }) => id),
  )
  // Only a part of its block belongs to the plan, so the root is copied too.
  await put(store, 'p', [root, node('beside')])
  const { digest } = (await download(store, 'p', 'older')) ?? assert.fail()
  await download(store, 'p', 'root', [{ id: 'older', digest }])
  await store.idle()
  assert.ok((await plannedRoots(backend, 'p')).includes('root'))
  await collecting.pass(OLDER_THAN + 1)
  await collecting.collect()
  await collecting.pass(UNDO + 1)
  assert.equal((await collecting.collect()).freed.objects, 12 * 101 + 3)
  await store.compactor.compact('p', readRoots, { signal: never, all: true })
  assert.deepEqual(await plannedRoots(backend, 'p'), [])
  await collecting.close()
})
