import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { gate, hooked, writesIds } from './failures.ts'
import { never, openStore, put } from './support.ts'

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
