import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StowageError } from '../../../src/errors.ts'
import type { UnreferencedCursor, UnreferencedObject } from '../../../src/object/collection.ts'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { asGuarded } from '../../../src/storage/guard.ts'
import { headKey } from '../../../src/store/records/keys.ts'
import { gate, hooked, writesIds } from '../failures.ts'
import { heldOf, never, put } from '../support.ts'
import { type Collecting, jsonBytesOf, node, OLDER_THAN, openCollecting, PROJECT, TERMS, UNDO } from './collecting.ts'

const KEPT = [node('kept', ['leaf']), node('leaf')]
const ZOMBIE = [node('zombie', ['bone', 'leaf']), node('bone', [], 'b'.repeat(100))]

async function pagesOf(
  { store, readRoots }: Collecting,
  limit: number,
  topsOnly = false,
): Promise<UnreferencedObject[]> {
  const objects: UnreferencedObject[] = []
  let after: UnreferencedCursor | undefined
  do {
    const page = await store.collector.unreferenced(PROJECT, readRoots, { signal: never, limit, topsOnly, after })
    assert.ok(page !== undefined && page.objects.length <= limit)
    objects.push(...page.objects)
    after = page.next
  } while (after !== undefined)
  return objects
}

test('unreachable objects are listed in pages, with their sizes, ages and states', async () => {
  const collecting = await openCollecting()
  const { store, roots, pass, collect, close } = collecting
  await put(store, PROJECT, KEPT)
  await put(store, PROJECT, ZOMBIE)
  await pass(2)
  await put(store, PROJECT, [node('young')])
  roots.add('kept')
  const expected = [
    { id: 'zombie', jsonBytes: jsonBytesOf(ZOMBIE.slice(0, 1)), state: 'unreferenced', ageEpochs: 2, isTop: true },
    { id: 'bone', jsonBytes: jsonBytesOf(ZOMBIE.slice(1)), state: 'unreferenced', ageEpochs: 2, isTop: false },
    { id: 'young', jsonBytes: jsonBytesOf([node('young')]), state: 'unreferenced', ageEpochs: 0, isTop: true },
  ]
  for (const limit of [1, 2, 3, 100]) assert.deepEqual(await pagesOf(collecting, limit), expected)
  const tops = expected.filter(({ isTop }) => isTop)
  for (const limit of [1, 2, 3]) assert.deepEqual(await pagesOf(collecting, limit, true), tops)
  await pass(OLDER_THAN - 1)
  await collect()
  await pass(1)
  const states = (await pagesOf(collecting, 2)).map(({ id, state, ageEpochs }) => [id, state, ageEpochs])
  assert.deepEqual(states, [
    ['zombie', 'condemned', 1],
    ['bone', 'condemned', 1],
    ['young', 'unreferenced', 3],
  ])
  await pass(UNDO)
  await collect()
  assert.deepEqual(
    (await pagesOf(collecting, 2)).map(({ id }) => id),
    ['young'],
  )
  await close()
})

/** A project whose only root leads to an object that an upload brings; the upload waits at its last step. */
async function withLateObject(): Promise<{
  readonly collecting: Collecting
  readonly finishUpload: () => Promise<unknown>
  /** Called with the answer of each look for the late object. */
  onLook(act: (() => Promise<unknown>) | undefined): void
}> {
  const [reached, isFree] = [gate(), gate()]
  let isArmed = false
  let onLook: (() => Promise<unknown>) | undefined
  const backend = hooked(asGuarded(memoryBackend()), async (call, detail, work) => {
    if (isArmed && writesIds(call, detail)) {
      reached.open()
      await isFree.opened
    }
    const answer = await work()
    if (call === 'getMany' && detail.includes('late')) await onLook?.()
    return answer
  })
  const collecting = await openCollecting(1, backend)
  await put(collecting.store, PROJECT, [node('root', ['late'])])
  collecting.roots.add('root')
  isArmed = true
  const upload = put(collecting.store, PROJECT, [node('late')])
  await reached.opened
  isArmed = false
  const finishUpload = async (): Promise<unknown> => {
    isFree.open()
    return upload
  }
  return { collecting, finishUpload, onLook: (act) => (onLook = act) }
}

test('a list that was made while an upload was on its way is not used again', async () => {
  const { collecting, finishUpload } = await withLateObject()
  assert.deepEqual(await pagesOf(collecting, 10), [])
  await finishUpload()
  assert.deepEqual(await pagesOf(collecting, 10), [])
  await collecting.close()
})

test('objects that become visible while a list is made are not in it', async () => {
  const { collecting, finishUpload, onLook } = await withLateObject()
  onLook(async () => {
    onLook(undefined)
    await finishUpload()
  })
  assert.deepEqual(await pagesOf(collecting, 10), [])
  assert.deepEqual(await heldOf(collecting.store, PROJECT, ['late']), new Set(['late']))
  await collecting.close()
})

test('in a project without roots everything is listed; a project that is not there has no list', async () => {
  const collecting = await openCollecting()
  const { store, readRoots, close } = collecting
  assert.equal(await store.collector.unreferenced(PROJECT, readRoots, { signal: never, limit: 1 }), undefined)
  assert.equal(await store.collector.collect(PROJECT, readRoots, TERMS), undefined)
  assert.equal(await store.collector.condemn(PROJECT, ['a'], readRoots, TERMS), undefined)
  assert.equal(await store.collector.restore(PROJECT, { signal: never }), undefined)
  await put(store, PROJECT, [...KEPT, ...ZOMBIE])
  assert.equal((await pagesOf(collecting, 3)).length, 4)
  assert.deepEqual(
    (await pagesOf(collecting, 3, true)).map(({ id }) => id),
    ['kept', 'zombie'],
  )
  const page = await store.collector.unreferenced(PROJECT, readRoots, { signal: never, limit: 1 })
  await store.remove(PROJECT)
  await put(store, PROJECT, KEPT)
  await assert.rejects(
    store.collector.unreferenced(PROJECT, readRoots, { signal: never, limit: 1, after: page?.next }),
    (error: StowageError) => error.code === 'conflict',
  )
  await close()
})

test('chosen objects are condemned unless they are young or something else refers to them', async () => {
  const { store, roots, readRoots, pass, collect, close } = await openCollecting()
  await put(store, PROJECT, KEPT)
  await put(store, PROJECT, ZOMBIE)
  await put(store, PROJECT, [node('other', ['bone'])])
  roots.add('kept')
  const young = await store.collector.condemn(PROJECT, ['zombie'], readRoots, TERMS)
  assert.deepEqual([young?.condemned.objects, young?.keptIds], [0, ['zombie']])
  await pass(OLDER_THAN + 1)
  const dry = await store.collector.condemn(PROJECT, ['zombie', 'leaf'], readRoots, { ...TERMS, dryRun: true })
  assert.deepEqual([dry?.condemned.objects, dry?.keptIds], [1, ['leaf']], 'another object leads to the bone')
  assert.equal((await heldOf(store, PROJECT, ['zombie'])).size, 1)
  const both = await store.collector.condemn(PROJECT, ['zombie', 'other'], readRoots, TERMS)
  assert.deepEqual([both?.condemned.objects, both?.kept], [3, 0])
  assert.deepEqual(await heldOf(store, PROJECT, ['zombie', 'bone', 'other', 'leaf', 'kept']), new Set(['leaf', 'kept']))
  await pass(UNDO + 1)
  assert.equal((await collect()).freed.objects, 3)
  await close()
})

test('what was freed is no longer counted as referring to others, even if the collection was cut off behind it', async () => {
  const inner = memoryBackend()
  let isFreed = false
  const head = Buffer.from(headKey(PROJECT)).toString()
  const backend = hooked(inner, async (call, key, work) => {
    if (isFreed && call === 'commit' && key === head) throw new Error('cut off')
    return work()
  })
  const collecting = await openCollecting(1, backend)
  const { store, collect, pass, roots } = collecting
  await put(store, PROJECT, KEPT)
  roots.add('kept')
  await put(store, PROJECT, [node('parent', ['child'])])
  await pass(OLDER_THAN + 1)
  assert.equal((await collect()).condemned.objects, 1)
  await pass(UNDO + 1)
  await put(store, PROJECT, [node('child')])
  isFreed = true
  await assert.rejects(collect())
  isFreed = false
  assert.deepEqual(await heldOf(store, PROJECT, ['parent']), new Set())
  const tops = await pagesOf(collecting, 10, true)
  assert.deepEqual(
    tops.map(({ id }) => id),
    ['child'],
  )
  await collecting.close()
})
