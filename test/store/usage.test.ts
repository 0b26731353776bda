import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ProjectUsage } from '../../src/object/roots.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { gate, hooked, writesIds } from './failures.ts'
import { download, never, openStore, put } from './support.ts'

/** Longer than replaced packs stay. */
const GRACE_EPOCHS = 300
const OBJECTS = [{ id: 'a' }, { id: 'b', child: { referencedId: 'a' } }]

test('usage that was counted while an upload wrote its ids is counted again after it', async () => {
  const [begun, go] = [gate(), gate()]
  const { store } = await openStore(
    hooked(memoryBackend(), async (call, key, work) => {
      if (!writesIds(call, key)) return work()
      begun.open()
      await go.opened
      return work()
    }),
  )
  const uploading = put(store, 'demo', OBJECTS)
  await begun.opened
  assert.equal((await store.usages.usage('demo', [], { signal: never })).objects, 0)
  go.open()
  await uploading
  assert.equal((await store.usages.usage('demo', [], { signal: never })).objects, OBJECTS.length)
  await store.close()
})

test('usage tells packs, replaced packs and plans on the disk apart', async () => {
  const backend = memoryBackend()
  const { store } = await openStore(backend)
  const usage = (over = store): Promise<ProjectUsage> => over.usages.usage('demo', [], { signal: never })
  const children = Array.from({ length: 1_500 }, (_, i) => ({ id: `leaf${i}` }))
  await put(store, 'demo', [{ id: 'root', children: children.map(({ id }) => ({ referencedId: id })) }, ...children])
  await put(store, 'demo', OBJECTS)
  await download(store, 'demo', 'root')
  await store.idle()
  const before = await usage()
  assert.equal(before.retiredBytes, 0)
  assert.equal(before.planBytes, await planBytes(backend))
  assert.ok(before.planBytes > 0)
  const merged = await store.compactor.compact('demo', () => Promise.resolve([]), { signal: never, all: true })
  await store.idle()
  const { storedBytes, retiredBytes } = await usage()
  assert.deepEqual([storedBytes, retiredBytes], [merged?.storedBytesAfter, before.storedBytes])
  for (let i = 0; i < GRACE_EPOCHS; i++) await store.epochs.advance()
  await store.close()
  const again = await openStore(backend)
  await again.store.idle()
  const after = await usage(again.store)
  assert.deepEqual([after.storedBytes, after.retiredBytes, after.planBytes], [storedBytes, 0, await planBytes(backend)])
  await again.store.close()
})

async function planBytes({ blobs }: StorageBackend): Promise<number> {
  let bytes = 0
  for await (const batch of blobs.list(''))
    for (const { name, sizeBytes } of batch) if (name.includes('/plan-')) bytes += sizeBytes
  return bytes
}
