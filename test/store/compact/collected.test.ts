import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { CompactionReport } from '../../../src/object/compaction.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { reindexStore } from '../../../src/store/upkeep/reindex.ts'
import { type Collecting, node, OLDER_THAN, openCollecting, PROJECT, UNDO } from '../collect/collecting.ts'
import { hooked } from '../failures.ts'
import {
  assertSound,
  collected,
  download,
  heldOf,
  type Made,
  measureStorage,
  never,
  openStore,
  put,
} from '../support.ts'

/** Random digits do not compress, so that what leaves the disk can be seen. */
function padding(seed: string): string {
  return Array.from({ length: 400 }, (_, i) => Buffer.from(`${seed}${i * 7_919}`).toString('base64')).join('')
}

const SHARED = ['s1', 's2', 's3'].map((id) => node(id))
const VERSIONS: readonly (readonly Made[])[] = [1, 2, 3, 4].map((version) => [
  ...(version === 1 ? SHARED : []),
  node(`own-${version}`, [], padding(`${version}`)),
  node(`root-${version}`, [`own-${version}`, 's1', 's2', 's3']),
])
const ALL = VERSIONS.flat().map(({ id }) => id)
const DELETED = ['own-2', 'root-2', 'own-3', 'root-3']
const KEPT = ALL.filter((id) => !DELETED.includes(id))

/** Four versions, of which two are deleted; what only they had is condemned. */
async function condemned(backend: StorageBackend = memoryBackend(), servers = 1): Promise<Collecting> {
  const collecting = await openCollecting(servers, backend)
  for (const objects of VERSIONS) await put(collecting.store, PROJECT, objects)
  for (const version of [1, 2, 3, 4]) collecting.roots.add(`root-${version}`)
  await collecting.collect()
  for (const root of ['root-2', 'root-3']) collecting.roots.delete(root)
  await collecting.pass(OLDER_THAN + 1)
  assert.equal((await collecting.collect()).condemned.objects, DELETED.length)
  return collecting
}

async function merge({ store, readRoots }: Collecting, by = store): Promise<void> {
  const report = await by.compactor.compact(PROJECT, readRoots, { signal: never, all: true })
  assert.equal(report?.packsAfter, 1)
}

test('condemned objects are merged too, stay readable, and can be restored', async () => {
  const collecting = await condemned()
  const { store, backend } = collecting
  await merge(collecting)
  assert.deepEqual(await heldOf(store, PROJECT, ALL), new Set(KEPT))
  assert.equal((await download(store, PROJECT, 'root-2'))?.ids.size, 5)
  await assertSound(backend)
  const restored = await store.collector.restore(PROJECT, { signal: never })
  assert.equal(restored?.objects, DELETED.length)
  assert.deepEqual(await heldOf(store, PROJECT, ALL), new Set(ALL))
  await assertSound(backend)
  await collecting.close()
})

test('objects condemned before a merge are freed after it, and the next merge reclaims their space', async () => {
  const collecting = await condemned()
  const { store, backend } = collecting
  await merge(collecting)
  await collecting.pass(UNDO + 1)
  assert.equal((await collecting.collect()).freed.objects, DELETED.length)
  assert.equal(await download(store, PROJECT, 'root-2'), undefined)
  const before = (await measureStorage(backend)).bytes
  await merge(collecting)
  assert.deepEqual(await heldOf(store, PROJECT, ALL), new Set(KEPT))
  const usage = await store.usages.usage(PROJECT, await collecting.readRoots(), { signal: never })
  assert.equal(usage.objects, KEPT.length)
  await collecting.pass(300)
  const again = await openStore(backend)
  await again.store.idle()
  const { bytes, records } = await measureStorage(backend)
  assert.equal(records['k'], 1, 'records of retired packs')
  assert.ok(bytes < before * 0.6, `${bytes} of ${before} bytes`)
  for (const root of ['root-1', 'root-4']) assert.equal((await download(again.store, PROJECT, root))?.ids.size, 5)
  await assertSound(backend)
  await again.store.close()
  await collecting.close()
})

test('the report counts the bytes of replaced packs until they are removed, regardless of the compaction that replaced them', async () => {
  const collecting = await condemned()
  const { store, backend } = collecting
  const compacted = async (over = store): Promise<CompactionReport> => {
    const report = await over.compactor.compact(PROJECT, collecting.readRoots, { signal: never, all: true })
    assert.ok(report !== undefined)
    return report
  }
  const first = await compacted()
  assert.deepEqual([first.packsAfter, first.retiredBytes], [1, first.storedBytesBefore])
  const idle = await compacted()
  assert.deepEqual([idle.merges, idle.retiredBytes], [0, first.retiredBytes])
  await collecting.pass(3)
  await put(store, PROJECT, [node('later', [])])
  const second = await compacted()
  assert.deepEqual([second.merges, second.retiredBytes], [1, first.retiredBytes + second.storedBytesBefore])
  await collecting.pass(300)
  const again = await openStore(backend)
  await again.store.idle()
  assert.equal((await compacted(again.store)).retiredBytes, 0)
  await again.store.close()
  await collecting.close()
})

test('objects that are condemned, freed or uploaded again during a merge keep their new state', async () => {
  const backend = memoryBackend()
  const collecting = await condemned(backend, 2)
  const [, other] = collecting.stores
  await collecting.pass(UNDO + 1)
  const deeds = [
    async () => void (await put(collecting.store, PROJECT, [VERSIONS[1][0]])),
    async () => void (await put(collecting.store, PROJECT, [node('fresh', ['own-3', 's1'])])),
    // A collection ends the merge that it meets.
    async () => void (await collecting.collect({}, other).catch(() => undefined)),
  ]
  const merging = await openStore(
    hooked(backend, async (call, _detail, work) => {
      const result = await work()
      if (call === 'commit') await deeds.shift()?.()
      return result
    }),
  )
  await merging.store.compactor.compact(PROJECT, collecting.readRoots, { signal: never, all: true })
  assert.equal(deeds.length, 0)
  const held = await heldOf(other, PROJECT, [...ALL, 'fresh'])
  for (const id of [...KEPT, 'own-2', 'fresh']) assert.ok(held.has(id), id)
  for (const id of held) assert.ok((await download(other, PROJECT, id)) !== undefined, id)
  await assertSound(backend)
  await merging.store.close()
  await collecting.close()
})

test('reindex after a merge finds the same objects', async () => {
  const collecting = await condemned()
  const { store, backend } = collecting
  await collecting.pass(UNDO + 1)
  await collecting.collect()
  await merge(collecting)
  const before = await Promise.all(['root-1', 'root-4'].map((root) => download(store, PROJECT, root)))
  await collecting.close()
  await collected(reindexStore(backend))
  const opened = await openStore(backend)
  for (const [i, root] of ['root-1', 'root-4'].entries())
    assert.deepEqual((await download(opened.store, PROJECT, root))?.lines.toSorted(), before[i]?.lines.toSorted())
  assert.deepEqual(await heldOf(opened.store, PROJECT, KEPT), new Set(KEPT))
  await assertSound(backend)
  await opened.store.close()
})
