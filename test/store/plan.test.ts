import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { keyBounds } from '../../src/store/records/keys.ts'
import { decodePlanRecord } from '../../src/store/records/records.ts'
import { gate, hooked, imageOf, putBlob, writesIds } from './failures.ts'
import { Oracle, randomGraph, referTo, seeded, shuffled, splitRandomly } from './graphs.ts'
import { assertRight, filled, GRAPH, oracle } from './planned.ts'
import {
  assertSound,
  collected,
  download,
  type Made,
  measureStorage,
  never,
  type Opened,
  openStore,
  put,
  until,
  within,
} from './support.ts'
import { turns } from '../support/patience.ts'

async function planBlobs(backend: StorageBackend): Promise<string[]> {
  return (await measureStorage(backend)).blobs.filter((name) => name.includes('/plan-'))
}

test('plans of large closures are stored and used after reopening, and small ones are not stored', async () => {
  const opened = await filled()
  await assertRight(opened)
  await opened.store.idle()
  await download(opened.store, 'demo', GRAPH[1_490].id)
  await opened.store.idle()
  const blobs = await planBlobs(opened.backend)
  assert.equal(blobs.length, 1)
  await assertSound(opened.backend)
  let puts = 0
  const reopened = await openStore(
    hooked(opened.backend, (call, _detail, work) => {
      if (call === 'put') puts++
      return work()
    }),
  )
  assert.ok(await assertRight(reopened), 'planned at once')
  assert.equal(puts, 0)
  assert.deepEqual(await planBlobs(opened.backend), blobs)
  await reopened.store.close()
})

test('a server loads a plan of many packs with few calls to the storage', async () => {
  const packs = 150
  const opened = await filled(memoryBackend(), packs)
  await assertRight(opened)
  await opened.store.close()
  let calls = 0
  const reopened = await openStore(
    hooked(opened.backend, (call, _detail, work) => {
      if (call === 'getMany') calls++
      return work()
    }),
  )
  calls = 0
  assert.ok(await assertRight(reopened), 'planned at once')
  assert.ok(calls < packs / 10, `${calls} calls`)
  await reopened.store.close()
})

test('the first response does not wait for a slow plan', async () => {
  const making = gate()
  const opened = await filled(
    hooked(memoryBackend(), async (call, name, work) => {
      if (call === 'put' && name.includes('/plan-')) await making.opened
      return work()
    }),
  )
  assert.equal(await within('an unplanned answer', assertRight(opened)), false)
  making.open()
  await opened.store.idle()
  assert.equal(await assertRight(opened), true)
  await opened.store.close()
})

test('a plan in progress for an older closure is not used for a newer one', async () => {
  const making = gate()
  let plans = 0
  const opened = await openStore(
    hooked(memoryBackend(), async (call, name, work) => {
      if (call === 'put' && name.includes('/plan-') && ++plans === 1) await making.opened
      return work()
    }),
  )
  const children = Array.from({ length: 1_100 }, (_, i): Made => ({ id: `k${i}` }))
  await put(opened.store, 'demo', [
    { id: 'root', children: referTo([...children.map(({ id }) => id), 'late']) },
    ...children,
  ])
  const early = await download(opened.store, 'demo', 'root')
  assert.deepEqual(early?.missing, ['late'])
  await put(opened.store, 'demo', [{ id: 'late' }])
  const asked = download(opened.store, 'demo', 'root')
  await turns()
  making.open()
  assert.deepEqual((await asked)?.missing, [])
  await opened.store.idle()
  assert.deepEqual((await download(opened.store, 'demo', 'root'))?.missing, [])
  await opened.store.close()
})

test('a plan is replaced when a missing or claimed object arrives', async () => {
  const children = Array.from({ length: 1_200 }, (_, i): Made => ({
    id: `k${i}`,
    children: referTo(i % 100 === 0 ? [`gone${i}`] : []),
  }))
  for (const late of ['gone0', 'gone1100', 'claimed']) {
    const opened = await openStore()
    await put(opened.store, 'demo', [
      { id: 'root', children: referTo(children.map(({ id }) => id)), __closure: { claimed: 1 } },
      ...children,
    ])
    const before = await download(opened.store, 'demo', 'root')
    await opened.store.idle()
    assert.equal((await download(opened.store, 'demo', 'root'))?.isPlanned, true)
    await put(opened.store, 'demo', [{ id: 'unrelated' }])
    assert.equal((await download(opened.store, 'demo', 'root'))?.digest, before?.digest)
    assert.equal((await planBlobs(opened.backend)).length, 1)
    await put(opened.store, 'demo', [{ id: late }])
    for (const store of [opened.store, opened.store, (await opened.reopen()).store]) {
      const after = await download(store, 'demo', 'root')
      assert.ok(after?.ids.has(late))
      assert.equal(after?.missing.length, late === 'claimed' ? 12 : 11)
    }
    const { store } = await openStore(opened.backend)
    await download(store, 'demo', 'root')
    await store.idle()
    const { records } = await measureStorage(opened.backend)
    assert.equal(records['p'], 1, 'the old plan counts no more')
    assert.equal(records['c'], (await planBlobs(opened.backend)).length - 1, 'its blob is to go')
    await assertSound(opened.backend)
    await store.close()
  }
})

test('a plan that was validated while an upload was applied is validated again', async () => {
  const applying = gate()
  let isApplying = false
  const { store } = await openStore(
    hooked(memoryBackend(), async (call, key, work) => {
      if (writesIds(call, key) && key.endsWith('\0late\0')) {
        isApplying = true
        await applying.opened
      }
      return work()
    }),
  )
  await put(store, 'demo', [{ id: 'root', children: referTo(['late']) }])
  await download(store, 'demo', 'root')
  const upload = put(store, 'demo', [{ id: 'late' }])
  await until(() => isApplying)
  // The sequence has made its step already; the id is written only now.
  assert.deepEqual((await download(store, 'demo', 'root'))?.missing, ['late'])
  assert.deepEqual((await download(store, 'demo', 'root'))?.missing, ['late'])
  applying.open()
  await upload
  assert.deepEqual((await download(store, 'demo', 'root'))?.missing, [])
  await store.close()
})

test('a plan whose blob is lost or damaged is rebuilt and never gives a wrong answer', async () => {
  const opened = await openStore()
  const graph = randomGraph(seeded(5), { objects: 1_100, paddingBytes: 60, prefix: 's' })
  const small = new Oracle()
  small.add(graph)
  for (const objects of splitRandomly(seeded(6), shuffled(seeded(7), [...graph, { id: 'apart' }]), 3))
    await put(opened.store, 'demo', objects)
  const check = async ({ store }: Opened): Promise<boolean> => {
    const got = await download(store, 'demo', graph[0].id)
    assert.ok(got !== undefined)
    assert.deepEqual(got.lines.toSorted(), small.lines(graph.map(({ id }) => id)))
    await store.idle()
    return got.isPlanned
  }
  await check(opened)
  await opened.store.close()
  const image = await imageOf(opened.backend)
  const planBlob = image.blobs.find(({ name }) => name.includes('/plan-'))
  const planRecord = image.records.find(({ key }) => key[0] === 'p'.charCodeAt(0))
  assert.ok(planBlob !== undefined && planRecord !== undefined)
  const places = [
    0,
    ...Array.from({ length: 7 }, (_, i) => 150 + Math.floor((i * (planBlob.bytes.length - 151)) / 6)),
    undefined,
  ]
  for (const isLoaded of [false, true]) {
    for (const place of places) {
      await putBlob(opened.backend, planBlob.name, planBlob.bytes)
      await opened.backend.records.commit({ put: [planRecord] })
      const reopened = await openStore(opened.backend)
      if (isLoaded) (await reopened.store.closure('demo', graph[0].id, { signal: never }))?.release()
      if (place === undefined) await opened.backend.blobs.remove([planBlob.name])
      else {
        const damaged = Buffer.from(planBlob.bytes)
        damaged[place] ^= 0x10
        await putBlob(opened.backend, planBlob.name, damaged)
      }
      // One answer may be cut; after that the plan is a new one.
      await check(reopened).catch((error: unknown) =>
        assert.equal((error as { code?: string }).code, 'corrupt_data', String(error)),
      )
      await check(reopened)
      assert.equal(await check(reopened), true, `byte ${place}`)
      await reopened.store.close()
    }
  }
})

test('a response of many short runs is copied into one piece only where a read costs as much as many bytes', async () => {
  const graph = randomGraph(seeded(80), { objects: 1_200, paddingBytes: 8_000 })
  const planBytesWith = async (readBytesPreferred: number): Promise<number> => {
    const { records, blobs, close } = hooked(memoryBackend(), (_call, _detail, work) => work())
    const opened = await openStore({ records, blobs: { ...blobs, readBytesPreferred }, close })
    for (let at = 0; at < graph.length; at += 100) await put(opened.store, 'demo', graph.slice(at, at + 100))
    await download(opened.store, 'demo', graph[0].id)
    await opened.store.idle()
    const bytes = await storedPlanBytes(opened.backend)
    await opened.store.close()
    return bytes
  }
  const [remote, local] = [await planBytesWith(8_388_608), await planBytesWith(1_024)]
  assert.ok(local > 0 && remote > 4 * local, `${remote} and ${local} bytes`)
})

test('stored plans stay within their budget: recently used ones stay, and one in use is not removed', async () => {
  const opened = await filled()
  const sizes = new Map<string, number>()
  const roots = GRAPH.slice(0, 60)
    .map(({ id }) => id)
    .filter((id) => oracle.closure(id).ids.size > 1_000)
    .slice(0, 5)
  assert.equal(roots.length, 5)
  for (const root of roots) {
    await download(opened.store, 'demo', root)
    await opened.store.idle()
  }
  for await (const batch of opened.backend.blobs.list(''))
    for (const { name, sizeBytes: size } of batch) if (name.includes('/plan-')) sizes.set(name, size)
  assert.equal(sizes.size, roots.length)
  await opened.store.close()
  const planBytesMax = [...sizes.values()].reduce((sum, size) => sum + size, 0) / 2
  const tight = await openStore(opened.backend, { planBytesMax })
  const inUse = await tight.store.closure('demo', roots[0], { signal: never })
  assert.ok(inUse?.plan !== undefined)
  const first = Buffer.concat(await collected(inUse.lines({ signal: never })))
  for (let pass = 0; pass < 2; pass++) {
    for (const root of roots.slice(1)) {
      assert.equal((await download(tight.store, 'demo', root))?.ids.size, oracle.closure(root).ids.size)
      await tight.store.idle()
      const bytes = await storedPlanBytes(opened.backend)
      assert.ok(bytes <= planBytesMax * 1.01, `${bytes} bytes of plans`)
    }
  }
  assert.ok(Buffer.concat(await collected(inUse.lines({ signal: never }))).equals(first))
  inUse.release()
  for (const root of roots) {
    assert.ok(await assertRight(tight, root).then(() => true))
    await tight.store.idle()
    assert.equal(await assertRight(tight, root), true)
  }
  assert.deepEqual(tight.background, [])
  await assertSound(opened.backend)
  await tight.store.close()
})

/** Bytes of the plans that records name; the blobs of others go a day later. */
async function storedPlanBytes(backend: StorageBackend): Promise<number> {
  let bytes = 0
  for await (const entries of backend.records.range(keyBounds('plan')))
    for (const { key, value } of entries) bytes += decodePlanRecord(key, value).planBytes
  return bytes
}

test('a plan that cannot be written or removed harms no response', async () => {
  for (const broken of ['put', 'remove', 'commit']) {
    let isBroken = false
    const opened = await filled(
      hooked(memoryBackend(), (call, _detail, work) =>
        isBroken && call === broken ? Promise.reject(new Error('read-only')) : work(),
      ),
    )
    isBroken = true
    for (let i = 0; i < 3; i++) {
      await assertRight(opened)
      await opened.store.idle()
    }
    isBroken = false
    await assertRight(opened)
    await opened.store.idle()
    assert.equal(await assertRight(opened), true)
    await opened.store.close()
  }
})

test('the plan of a model that arrived in one upload copies little of its pack', async () => {
  const opened = await openStore()
  const random = seeded(51)
  const children = Array.from({ length: 2_000 }, (_, i): Made => ({
    id: `k${i}`,
    text: Array.from({ length: 40 }, () => random(2 ** 30).toString(36)).join(''),
  }))
  await put(opened.store, 'demo', [...children, { id: 'root', children: referTo(children.map(({ id }) => id)) }], 500)
  await download(opened.store, 'demo', 'root')
  await opened.store.idle()
  const [plan] = await planBlobs(opened.backend)
  const { blobs } = await imageOf(opened.backend)
  const sizeOf = (isPlan: boolean): number =>
    blobs.filter(({ name }) => (name === plan) === isPlan).reduce((sum, { bytes }) => sum + bytes.length, 0)
  assert.ok(sizeOf(true) > 0)
  assert.ok(sizeOf(true) < sizeOf(false) / 4, `the plan has ${sizeOf(true)} bytes, the pack ${sizeOf(false)}`)
  const selection = await opened.store.closure('demo', 'root', { signal: never })
  assert.equal(selection?.objects, 2_001)
  assert.ok(selection.plan !== undefined)
  selection.release()
  await opened.store.close()
})
