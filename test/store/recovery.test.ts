import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ObjectPage } from '../../src/object/graph-store.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { createPackStore } from '../../src/store/pack-store.ts'
import { type Fault, faulty, hooked, imageOf, noFault, putBlob, putRecord, restore, writesIds } from './failures.ts'
import { randomGraph, referTo, seeded } from './graphs.ts'
import {
  heldCount,
  assertSound,
  collected,
  download,
  heldOf,
  type Made,
  measureStorage,
  never,
  openStore,
  put,
  undying,
  within,
} from './support.ts'

const random = seeded(17)
const BIG: readonly Made[] = randomGraph(random, { objects: 400, paddingBytes: 1_200 })

/** Uploads that crash after their commit, before any id is written. */
async function crashed(uploads: Readonly<Record<string, readonly Made[]>>): Promise<StorageBackend> {
  const inner = memoryBackend()
  // Each of them is tried again while others follow, and fails again.
  const { store } = await openStore(
    hooked(inner, (call, key, work) => (writesIds(call, key) ? Promise.reject(new Error('crashed')) : work())),
  )
  for (const [project, objects] of Object.entries(uploads))
    await assert.rejects(put(store, project, objects), { code: 'storage_unavailable' })
  await store.idle()
  return inner
}

/** The first page of an export from a store that has just been opened. */
async function firstPage(backend: StorageBackend): Promise<ObjectPage | undefined> {
  const { store } = await openStore(backend)
  try {
    return await store.pager.page('demo', { textBytesMax: 1_000_000, signal: never })
  } finally {
    await store.close()
  }
}

test('opening applies commits that a crash interrupted', async () => {
  const backend = await crashed({ small: [{ id: 'a', children: referTo(['b']) }, { id: 'b' }], big: BIG })
  assert.equal((await measureStorage(backend)).records['w'], 2)
  const { store, background } = await openStore(backend)
  assert.equal((await download(store, 'small', 'a'))?.ids.size, 2)
  assert.equal((await download(store, 'big', BIG[0].id))?.ids.size, BIG.length)
  assert.equal((await measureStorage(backend)).records['w'], undefined)
  assert.deepEqual(background, [])
  await store.idle()
  await assertSound(backend)
  await store.close()
})

test('a damaged pack is reported and does not affect other objects', async () => {
  const backend = await crashed({ first: BIG, second: [{ id: 'a' }], third: [{ id: 'b' }] })
  const [{ name, bytes }] = (await imageOf(backend)).blobs
  await putBlob(
    backend,
    name,
    bytes.map((byte, i) => (i === bytes.length - 200 ? byte ^ 1 : byte)),
  )
  const { store, background } = await openStore(backend)
  assert.equal(background.length, 1)
  assert.equal((background[0] as { code: string }).code, 'corrupt_data')
  assert.deepEqual(await heldOf(store, 'second', ['a']), new Set(['a']))
  assert.deepEqual(await heldOf(store, 'third', ['b']), new Set(['b']))
  assert.deepEqual(await heldOf(store, 'first', [BIG[0].id]), new Set())
  await put(store, 'first', BIG)
  assert.equal((await download(store, 'first', BIG[0].id))?.ids.size, BIG.length)
  await store.close()
  await putBlob(backend, name, bytes)
  const repaired = await openStore(backend)
  assert.deepEqual(repaired.background, [])
  assert.equal((await download(repaired.store, 'first', BIG[0].id))?.ids.size, BIG.length)
  await assertSound(backend)
})

test('a damaged marker is reported and kept, because its pack may not be applied', async () => {
  const backend = await crashed({ demo: [{ id: 'a' }] })
  const mark = (await imageOf(backend)).records.find(({ key }) => key[0] === 'w'.charCodeAt(0))
  assert.ok(mark !== undefined)
  await putRecord(backend, mark.key, undefined)
  // The same mark under a key in which one bit is another: it points to a pack that is not there.
  const key = mark.key.map((byte, i) => (i === mark.key.length - 2 ? byte ^ 2 : byte))
  await putRecord(backend, key, mark.value)
  const { store, background } = await openStore(backend)
  assert.equal(background.length, 1)
  assert.equal((await measureStorage(backend)).records['w'], 1)
  await store.close()
})

test('an export that would wait for a damaged pack reports the damage', async () => {
  const damaged = async (prefix: string): Promise<StorageBackend> => {
    const backend = await crashed({ demo: [{ id: 'a' }] })
    const entry = (await imageOf(backend)).records.find(({ key }) => Buffer.from(key).toString().startsWith(prefix))
    assert.ok(entry !== undefined)
    await putRecord(
      backend,
      entry.key,
      entry.value.map((byte, i) => (i === entry.value.length >> 1 ? byte ^ 1 : byte)),
    )
    return backend
  }
  for (const prefix of ['w\0', 'k\0'])
    await assert.rejects(firstPage(await damaged(prefix)), { code: 'corrupt_data' }, prefix)
  const inBlob = await crashed({ demo: BIG })
  const [{ name, bytes }] = (await imageOf(inBlob)).blobs
  const changed = bytes.map((byte, i) => (i === bytes.length - 200 ? byte ^ 1 : byte))
  await putBlob(inBlob, name, changed)
  await assert.rejects(firstPage(inBlob), { code: 'corrupt_data' })
  assert.equal((await firstPage(await crashed({ demo: [{ id: 'a' }] })))?.selection.objects, 1)
})

test('a storage fault or a crash while opening is an error, and the next opening completes', async () => {
  const image = await imageOf(await crashed({ demo: [{ id: 'a' }, { id: 'b' }], big: BIG.slice(0, 50) }))
  for (const mode of ['once', 'crash'] as const) {
    for (const isDone of [false, true]) {
      for (let at = 0; ; at++) {
        const inner = await restore(memoryBackend(), image)
        const fault: Fault = Object.assign(noFault(), { at, isDone, mode })
        const store = createPackStore({
          backend: asGuarded(undying(faulty(inner, fault))),
          onBackgroundError: () => undefined,
        })
        const opening = within('opening', store.ready())
        const isOpen = await opening.then(
          () => true,
          () => false,
        )
        await store.idle()
        const wasHit = fault.calls > at
        if (mode === 'once') fault.at = undefined
        if (!isOpen) await assert.rejects(opening, { code: 'storage_unavailable' })
        else if (mode === 'once') assert.deepEqual(await heldOf(store, 'demo', ['a', 'b']), new Set(['a', 'b']))
        await within('closing', store.close())
        const reopened = await openStore(inner)
        assert.deepEqual(await heldOf(reopened.store, 'demo', ['a', 'b']), new Set(['a', 'b']), `call ${at}`)
        assert.equal(await heldCount(reopened.store, 'big', BIG.slice(0, 50)), 50)
        await reopened.store.idle()
        await assertSound(inner)
        await reopened.store.close()
        if (!wasHit) break
      }
    }
  }
})

test('repeated opening and closing, even without waiting, is harmless', async () => {
  const backend = await crashed({ demo: BIG })
  for (let i = 0; i < 5; i++) {
    const store = createPackStore({ backend: asGuarded(undying(backend)) })
    const opening = store.ready()
    assert.equal(store.ready(), opening)
    if (i % 2) await opening
    await store.close()
    await opening.catch(() => undefined)
  }
  const { store } = await openStore(backend)
  assert.equal((await download(store, 'demo', BIG[0].id))?.ids.size, BIG.length)
  assert.deepEqual((await collected(store.projects())).flat(), ['demo'])
  await assertSound(backend)
  await store.close()
})
