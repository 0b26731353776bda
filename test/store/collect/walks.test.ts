import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { RecordStore } from '../../../src/storage/backend.ts'
import { heldOf, never, put } from '../support.ts'
import { node, OLDER_THAN, openCollecting, PROJECT } from './collecting.ts'

const CLAIMED_ABSENT = 20_000
const ZOMBIES = Array.from({ length: 50 }, (_, i) => node(`zombie${i}`))
const IDS_ASKED_MAX = 3_000

test('a walk of a project with condemned objects does not look up every absent claim', async () => {
  const backend = memoryBackend()
  const { records } = backend
  let asked = 0
  const counting: RecordStore = {
    limits: records.limits,
    getMany: (keys, options) => {
      asked += keys.length
      return records.getMany(keys, options)
    },
    range: (bounds, options) => records.range(bounds, options),
    insertMany: (entries, options) => records.insertMany(entries, options),
    commit: (change, options) => records.commit(change, options),
    close: () => records.close(),
  }
  const { store, roots, pass, collect, close } = await openCollecting(1, { ...backend, records: counting })
  const absent = Array.from({ length: CLAIMED_ABSENT }, (_, i) => [`absent${i}`, 1] as const)
  const claimed = [...absent, ...ZOMBIES.map(({ id }) => [id, 1] as const)]
  await put(store, PROJECT, ZOMBIES)
  await put(store, PROJECT, [node('kept', ['leaf']), node('leaf')])
  roots.add('kept')
  await pass(OLDER_THAN + 1)
  assert.equal((await collect()).condemned.objects, ZOMBIES.length)
  await put(store, PROJECT, [{ ...node('root', ['leaf']), __closure: Object.fromEntries(claimed) }])
  await put(store, PROJECT, [{ id: 'zombie0', children: [], text: '' }])
  await store.idle()
  asked = 0
  const selection = await store.closure(PROJECT, 'root', { signal: never })
  assert.ok(selection !== undefined)
  // Condemned objects can be read until they are freed, and one of them was uploaded anew.
  assert.equal(selection.objects, 2 + ZOMBIES.length)
  selection.release()
  assert.ok(asked < IDS_ASKED_MAX, `${asked} records were asked for`)
  assert.equal((await heldOf(store, PROJECT, ['zombie0'])).size, 1)
  await store.idle()
  await close()
})
