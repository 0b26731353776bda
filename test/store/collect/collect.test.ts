import assert from 'node:assert/strict'
import { test } from 'node:test'
import { counted, jsonBytesOf, node, OLDER_THAN, openCollecting, PROJECT, UNDO } from './collecting.ts'
import { assertSound, download, heldOf, listed, put } from '../support.ts'

const OLD = [node('old', ['shared', 'gone']), node('gone', ['leaf']), node('leaf'), node('shared')]
const NEW = [node('new', ['shared'])]
const ZOMBIE = [node('zombie', ['bone']), node('bone')]

test('an unreachable object is condemned after its grace period, stays readable until it is freed, and is then gone', async () => {
  const { store, roots, pass, collect, backend, close } = await openCollecting()
  await put(store, PROJECT, OLD)
  await put(store, PROJECT, NEW)
  await put(store, PROJECT, ZOMBIE)
  for (const root of ['old', 'new']) roots.add(root)
  await collect()
  roots.delete('old')
  const going = [...OLD.slice(0, 3), ...ZOMBIE]
  const ids = going.map(({ id }) => id)

  await pass(OLDER_THAN)
  assert.equal((await collect()).condemned.objects, 0, 'all is younger than the grace')
  await pass(1)
  const dry = await collect({ dryRun: true })
  assert.deepEqual(counted(dry.condemned), { objects: 5, jsonBytes: jsonBytesOf(going) })
  assert.deepEqual(counted(dry.condemned.byCause.oldVersion), { objects: 3, jsonBytes: jsonBytesOf(OLD.slice(0, 3)) })
  assert.deepEqual(counted(dry.condemned.byCause.neverReferenced), { objects: 2, jsonBytes: jsonBytesOf(ZOMBIE) })
  assert.equal((await heldOf(store, PROJECT, ids)).size, 5, 'a dry run changes nothing')

  assert.deepEqual((await collect()).condemned, dry.condemned)
  assert.equal((await heldOf(store, PROJECT, ids)).size, 0, 'what is condemned is to be uploaded again')
  assert.equal((await listed(store, PROJECT, ids)).length, 5)
  assert.deepEqual((await download(store, PROJECT, 'old'))?.ids, new Set(OLD.map(({ id }) => id)))

  await pass(UNDO)
  assert.equal((await collect()).freed.objects, 0)
  await pass(1)
  const freed = await collect()
  assert.deepEqual(freed.freed, dry.condemned)
  assert.deepEqual(await listed(store, PROJECT, ids), [])
  assert.equal(await download(store, PROJECT, 'old'), undefined)
  assert.deepEqual((await download(store, PROJECT, 'new'))?.ids, new Set(['new', 'shared']))
  const usage = await store.usages.usage(PROJECT, [], { signal: new AbortController().signal })
  assert.equal(usage.objects, 2)
  await assertSound(backend)
  await close()
})
