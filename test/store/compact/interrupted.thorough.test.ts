import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { StowageError } from '../../../src/errors.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { type Fault, faulty, hooked, type Image, imageOf, noFault, restore } from '../failures.ts'
import { assertSound, measureStorage, openStore, put } from '../support.ts'
import { assertHolds, compact, exported, history, PROJECT, smallest, uploaded } from './support.ts'

const TINY = history({ versions: 4, objects: 40, changed: 3, paddingBytes: 20 })

async function uploadedImage(): Promise<Image> {
  const backend = memoryBackend()
  const { store } = await uploaded(TINY, backend)
  await store.close()
  return imageOf(backend)
}

/** Compacts until the fault hits, as a process that dies then. */
async function dies(backend: StorageBackend, fault: Fault): Promise<void> {
  try {
    const { store } = await openStore(backend, { backend: faulty(backend, fault) })
    await compact(store, TINY)
    await store.idle()
  } catch {
    // What it leaves is looked at by the next server.
  }
}

test('a compaction that dies at any call of the storage loses nothing, and the next server completes it', async () => {
  const image = await uploadedImage()
  const counting = noFault()
  await dies(await restore(memoryBackend(), image), counting)
  assert.ok(counting.calls > 40, `${counting.calls} calls`)
  for (let at = 0; at < counting.calls; at++) {
    // A read that is done and lost is one that is not done.
    for (const isDone of ['getMany', 'range', 'read'].includes(counting.log[at]) ? [false] : [false, true]) {
      const backend = smallest(await restore(memoryBackend(), image))
      const fault: Fault = { ...noFault(), at, mode: 'crash', isDone }
      await dies(backend, fault)
      const what = `call ${at} of ${counting.calls} (${fault.log[at]}), ${isDone ? 'done' : 'not done'}`
      const opened = await openStore(backend)
      await assertHolds(opened.store, TINY, { closures: 1 })
      await opened.store.idle()
      assert.equal((await measureStorage(backend)).records['m'], undefined, `${what}: a merge is still under way`)
      assert.equal((await compact(opened.store, TINY)).packsAfter, 1, what)
      await assertHolds(opened.store, TINY, { closures: 1 })
      assert.deepEqual((await exported(opened.store)).toSorted(), TINY.oracle.lines(TINY.oracle.objects.keys()), what)
      assert.deepEqual(opened.background, [], what)
      await assertSound(backend)
      await opened.store.close()
    }
  }
})

test('any single failure ends a compaction, and the next one in the same process completes it', async () => {
  const image = await uploadedImage()
  const counting = noFault()
  const counted = await openStore(memoryBackend(), { backend: faulty(await restore(memoryBackend(), image), counting) })
  await compact(counted.store, TINY)
  await counted.store.close()
  for (let at = 0; at < counting.calls; at += 3) {
    const backend = await restore(memoryBackend(), image)
    const fault = noFault()
    const opened = await openStore(memoryBackend(), { backend: faulty(backend, fault) })
    await opened.store.idle()
    fault.at = fault.calls + at
    fault.isDone = at % 2 === 0
    await compact(opened.store, TINY).catch(() => undefined)
    fault.at = undefined
    assert.equal((await compact(opened.store, TINY)).packsAfter, 1, `call ${at}`)
    await assertHolds(opened.store, TINY, { closures: 1 })
    await assertSound(backend)
    await opened.store.close()
  }
})

test('compactors that run at the same time merge everything and lose nothing', async () => {
  for (const seed of [1, 2, 3, 4]) {
    const backend = smallest(await restore(memoryBackend(), await uploadedImage()))
    const slow = hooked(backend, async (call, _detail, work) => {
      const result = await work()
      for (let turn = call === 'commit' ? seed : 1; turn > 0; turn--)
        await new Promise((resolve) => setImmediate(resolve))
      return result
    })
    const stores = await Promise.all([openStore(backend), openStore(slow), openStore(slow)])
    const reports = await Promise.all(stores.map(({ store }) => compact(store, TINY)))
    assert.ok(reports.some(({ merges }) => merges > 0))
    for (const { store, background } of stores) {
      assert.equal((await compact(store, TINY)).packsAfter, 1)
      await assertHolds(store, TINY, { closures: 2 })
      assert.deepEqual(background, [])
    }
    await assertSound(backend)
    for (const { store } of stores) await store.close()
  }
})

test('a full disk stops a compaction cleanly, and a later one completes it', async () => {
  const large = history({ versions: 3, objects: 400, changed: 10, paddingBytes: 600 })
  const backend = memoryBackend()
  const before = await uploaded(large, backend)
  const packs = (await measureStorage(backend)).blobs
  const full = await openStore(
    hooked(backend, (call, _detail, work) =>
      call === 'put' ? Promise.reject(new StowageError('storage_full', 'no space is left')) : work(),
    ),
  )
  const report = await compact(full.store, large, { all: true })
  assert.equal(report.stopped, 'storageFull')
  assert.equal(report.packsAfter, report.packsBefore)
  assert.deepEqual((await measureStorage(backend)).blobs, packs)
  await assertHolds(before.store, large)
  assert.equal((await compact(before.store, large, { all: true })).packsAfter, 1, 'once there is space')
  await assertSound(backend)
  await before.store.close()
  await full.store.close()
})

test('a compaction stops on request and leaves no unreferenced blob', async () => {
  const large = history({ versions: 3, objects: 400, changed: 10, paddingBytes: 600 })
  const backend = memoryBackend()
  const opened = await uploaded(large, backend)
  const packs = (await measureStorage(backend)).blobs
  const stop = new AbortController()
  const stopping = await openStore(
    hooked(backend, (call, _detail, work) => {
      if (call === 'put') stop.abort(new Error('enough'))
      return work()
    }),
  )
  await assert.rejects(compact(stopping.store, large, { all: true, signal: stop.signal }), /enough/)
  assert.deepEqual((await measureStorage(backend)).blobs, packs)
  await put(opened.store, PROJECT, [{ id: 'later' }])
  await assertHolds(stopping.store, large)
  await opened.store.close()
  await stopping.store.close()
})
