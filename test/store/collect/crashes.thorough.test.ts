import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import type { PackStore } from '../../../src/store/pack-store.ts'
import { faulty, type Fault, hooked, type Image, imageOf, InjectedError, noFault, restore } from '../failures.ts'
import {
  assertSound,
  download,
  heldOf,
  listed,
  type Made,
  measureStorage,
  openStore,
  put,
  undying,
} from '../support.ts'
import { jsonBytesOf, node, OLDER_THAN, openCollecting, PROJECT, TERMS, totalsOf, UNDO } from './collecting.ts'

const KEPT = [node('kept', ['leaf', 'revived']), node('leaf'), node('revived')]
const OLD = [node('old', ['leaf', 'older']), node('older', [], 'x'.repeat(300))]
const ZOMBIES = [node('zombie', ['bone']), node('bone')]
const ALL = [...KEPT, ...OLD, ...ZOMBIES].map(({ id }) => id)

async function advance(store: PackStore, epochs: number): Promise<void> {
  for (let i = 0; i < epochs; i++) await store.epochs.advance()
}

function collect(store: PackStore): ReturnType<PackStore['collector']['collect']> {
  const root = { kind: 'version', id: 'v', groupId: null, rootObjectId: 'kept' }
  return store.collector.collect(PROJECT, () => Promise.resolve([root]), TERMS)
}

/** A project in several packs, old enough to be collected. */
async function collectable(): Promise<Image> {
  const { store, backend } = await openStore()
  for (const objects of [OLD, KEPT.slice(1), ZOMBIES]) await put(store, PROJECT, objects)
  await advance(store, OLDER_THAN + 1)
  await put(store, PROJECT, KEPT.slice(0, 1))
  await store.close()
  return imageOf(backend)
}

/** The same, with everything condemned that is to go, one object too many, and one that was written anew. */
async function freeable(image: Image): Promise<Image> {
  const backend = await restore(memoryBackend(), image)
  const { store } = await openStore(backend)
  const none = { kind: 'version', id: 'v', groupId: null, rootObjectId: 'leaf' }
  await store.collector.collect(PROJECT, () => Promise.resolve([none]), { ...TERMS, olderThanEpochs: 1 })
  await put(store, PROJECT, KEPT.slice(1, 2))
  await advance(store, UNDO + 1)
  await store.close()
  return imageOf(backend)
}

/** Cuts a collection off at each call of the storage in turn, in both ways. */
async function cutOffEverywhere(
  image: Image,
  check: (store: PackStore, backend: StorageBackend) => Promise<void>,
  mode: Fault['mode'],
): Promise<number> {
  let cuts = 0
  for (const isDone of [false, true]) {
    for (let at = 0, isCut = true; isCut; at++) {
      const backend = await restore(memoryBackend(), image)
      const fault = noFault()
      const { store } = await openStore(undefined, { backend: undying(faulty(backend, fault)) })
      Object.assign(fault, { calls: 0, at, mode, isDone })
      isCut = await collect(store).then(
        () => fault.calls > at,
        (error: unknown) => {
          assert.ok(
            String((error as Error).cause ?? error).includes('fails') || error instanceof InjectedError,
            String(error),
          )
          return true
        },
      )
      fault.at = undefined
      await store.close()
      const again = await openStore(backend)
      await check(again.store, backend)
      await assertSound(backend)
      await again.store.close()
      cuts++
    }
  }
  return cuts
}

for (const mode of ['crash', 'once'] as const) {
  test(`a collection that is cut off (${mode}) while it condemns is completed by the next one`, async () => {
    const cuts = await cutOffEverywhere(
      await collectable(),
      async (store, backend) => {
        assert.equal((await listed(store, PROJECT, ALL)).length, ALL.length, 'all can be read')
        await collect(store)
        assert.deepEqual(await heldOf(store, PROJECT, ALL), new Set(KEPT.map(({ id }) => id)))
        await advance(store, UNDO + 1)
        await collect(store)
        assert.equal((await listed(store, PROJECT, ALL)).length, KEPT.length)
        assert.deepEqual(await totalsOf(backend), { objects: KEPT.length, jsonBytes: jsonBytesOf(KEPT) })
      },
      mode,
    )
    assert.ok(cuts > 20, `${cuts} cuts`)
  })

  test(`a collection that is cut off (${mode}) while it revives and frees is completed by the next one`, async () => {
    const cuts = await cutOffEverywhere(
      await freeable(await collectable()),
      async (store, backend) => {
        await collect(store)
        assert.equal((await listed(store, PROJECT, ALL)).length, KEPT.length)
        assert.deepEqual(await heldOf(store, PROJECT, ALL), new Set(KEPT.map(({ id }) => id)))
        assert.deepEqual(await totalsOf(backend), { objects: KEPT.length, jsonBytes: jsonBytesOf(KEPT) })
      },
      mode,
    )
    assert.ok(cuts > 20, `${cuts} cuts`)
  })
}

test('wherever a collection is cut off, a plan that was stored before sends no freed object', async () => {
  const absent = Array.from({ length: 1_001 }, (_, at) => [`absent${at}`, 1] as const)
  const leaf = node('planned-leaf')
  const root: Made = { id: 'planned', __closure: { ...Object.fromEntries(absent), 'planned-leaf': 1 } }
  for (let [at, wasCut] = [1, true]; wasCut; at++) {
    let isCut = false
    let commitsLeft = Infinity
    const backend = memoryBackend()
    const cutting = hooked(backend, (call, _detail, work) => {
      if (call !== 'commit' || commitsLeft-- > 0) return work()
      isCut = true
      return Promise.reject(new Error('cut off'))
    })
    const { store, roots, pass, collect, close } = await openCollecting(1, cutting)
    await put(store, PROJECT, [node('kept')])
    roots.add('kept')
    await put(store, PROJECT, [leaf, root])
    await download(store, PROJECT, root.id)
    await store.idle()
    assert.equal((await measureStorage(backend)).records['p'], 1, 'the plan is stored')
    await pass(OLDER_THAN + 1)
    assert.equal((await collect()).condemned.objects, 2)
    await pass(UNDO + 1)
    commitsLeft = at
    await collect().catch(() => undefined)
    wasCut = isCut
    commitsLeft = Infinity
    await close()
    const { store: next } = await openStore(backend)
    await put(next, PROJECT, [root])
    const isLeafThere = (await listed(next, PROJECT, [leaf.id])).length === 1
    assert.equal((await download(next, PROJECT, root.id))?.ids.has(leaf.id), isLeafThere, `cut off at commit ${at}`)
    await next.close()
  }
})
