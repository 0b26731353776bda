import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { divideMemory } from '../../src/memory/service-memory.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import { LocationIndex } from '../../src/store/closure/location-index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { faulty, gate, hooked, noFault, writesIds } from './failures.ts'
import { type GraphOptions, Oracle, randomGraph, referTo, seeded, shuffled, splitRandomly } from './graphs.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import {
  assertSound,
  batchesOf,
  download,
  type Made,
  never,
  type Opened,
  openStore,
  put,
  until,
  within,
} from './support.ts'
import { turns } from '../support/patience.ts'

/** A store over the same storage that can make no plans. */
function openPlanless(backend: StorageBackend): Promise<Opened> {
  return openStore(backend, {
    newId: () => {
      throw new Error('no plans here')
    },
  })
}

/** Stored plans would serve everybody, so closures without one are looked at first. */
async function assertClosures(
  opened: Opened,
  project: string,
  oracle: Oracle,
  roots: readonly string[],
  isFirst = true,
): Promise<void> {
  const planless = await openPlanless(opened.backend)
  const check = async (
    { store }: Opened,
    root: string,
    isPlanned: boolean | undefined,
  ): Promise<string | undefined> => {
    const { ids, missing } = oracle.closure(root)
    const got = await download(store, project, root)
    assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids), `below ${root}`)
    assert.deepEqual(got?.missing, missing)
    assert.equal(got?.isPlanned, isPlanned ?? got?.isPlanned)
    return got?.digest
  }
  const digests: (string | undefined)[] = []
  for (const root of roots) digests.push(await check(planless, root, isFirst ? false : undefined))
  for (const [i, root] of roots.entries()) assert.equal(await check(opened, root, undefined), digests[i])
  await opened.store.idle()
  for (const [i, root] of roots.entries()) assert.equal(await check(opened, root, true), digests[i])
  await planless.store.close()
}

const SHAPES: readonly GraphOptions[] = [
  { objects: 1 },
  { objects: 40, isCyclic: true, missingPercent: 20, claimPercent: 30 },
  { objects: 300, missingPercent: 10, isHex: true },
  { objects: 300, isCyclic: true, claimPercent: 10 },
  { objects: 1_100, isCyclic: true, missingPercent: 5, claimPercent: 5, paddingBytes: 200 },
]

test('closures equal the oracle over random graphs, splits and orders', async () => {
  for (const [seed, shape] of [...SHAPES, ...SHAPES.slice(1, 4)].entries()) {
    const random = seeded(seed)
    const graph = randomGraph(random, shape)
    const orders = [graph, graph.toReversed(), shuffled(random, graph)]
    const uploads = splitRandomly(random, orders[seed % 3], 1 + random(12))
    const opened = await openStore()
    const oracle = new Oracle()
    for (const objects of uploads) {
      await put(opened.store, 'demo', objects)
      oracle.add(objects)
    }
    const roots = [graph[0].id, ...Array.from({ length: 2 }, () => graph[random(graph.length)].id)]
    await assertClosures(opened, 'demo', oracle, roots)
    const reopened = await opened.reopen()
    await assertClosures(reopened, 'demo', oracle, roots, false)
    assert.equal(await download(reopened.store, 'demo', 'nowhere'), undefined)
    assert.equal(await download(reopened.store, 'nowhere', roots[0]), undefined)
    await reopened.store.close()
    await assertSound(opened.backend)
  }
})

test('closures equal the oracle if objects lie in several packs and one of them owns each', async () => {
  for (let seed = 20; seed < 23; seed++) {
    const random = seeded(seed)
    const graph = randomGraph(random, {
      objects: 700,
      isCyclic: seed % 2 === 0,
      missingPercent: 5,
      claimPercent: 5,
      isHex: seed % 2 === 0,
    })
    const opened = await openStore()
    const uploads = Array.from({ length: 5 }, () => shuffled(random, graph).slice(0, 400 + random(300)))
    const all = gate()
    let ready = 0
    // Nobody commits before everybody has been admitted, so each of them writes what all have.
    const together = async function* (objects: readonly Made[]): AsyncGenerator<ObjectBatch> {
      yield* batchesOf(objects, 200)
      if (++ready === uploads.length) all.open()
      await all.opened
    }
    const results = await Promise.all(
      uploads.map((objects) => opened.store.put('demo', together(objects), { signal: never })),
    )
    const oracle = new Oracle()
    for (const objects of uploads) oracle.add(objects)
    assert.equal(
      results.reduce((sum, { inserted }) => sum + inserted, 0),
      oracle.objects.size,
    )
    const roots = [...oracle.objects.keys()].filter((_, i) => i % 300 === 0)
    await assertClosures(opened, 'demo', oracle, roots)
    await assertSound(opened.backend)
    await opened.store.close()
  }
})

test('missing children count once, regardless of the number of references', async () => {
  const opened = await openStore()
  const oracle = new Oracle()
  for (let i = 0; i < 5; i++) {
    const objects: Made[] = [
      {
        id: `p${i}`,
        a: referTo(['gone', 'lost', `p${i + 1}`]),
        deep: { er: [{ referencedId: 'gone' }] },
        __closure: { gone: 1, lost: 2, claimed: 3 },
      },
    ]
    await put(opened.store, 'demo', objects)
    oracle.add(objects)
  }
  const got = await download(opened.store, 'demo', 'p0')
  assert.deepEqual(got?.missing, ['gone', 'lost', 'p5'])
  await assertClosures(opened, 'demo', oracle, ['p0', 'p3'])
  for (const id of ['claimed', 'lost', 'p5', 'gone']) {
    await put(opened.store, 'demo', [{ id }])
    oracle.add([{ id }])
    await assertClosures(opened, 'demo', oracle, ['p0', 'p3', id])
  }
  await opened.store.close()
})

test('claims add held objects and never hide a reference', async () => {
  const opened = await openStore()
  const oracle = new Oracle()
  const objects: Made[] = [
    { id: 'liar', children: referTo(['child']), __closure: { other: 1, nothing: 1, liar: 0 } },
    { id: 'child', children: referTo(['grandchild']), __closure: {} },
    { id: 'grandchild' },
    { id: 'other', children: referTo(['below']) },
    { id: 'below', __closure: { liar: 1 } },
    { id: 'apart' },
  ]
  for (const order of [objects, objects.toReversed()]) {
    const project = order === objects ? 'together' : 'apart'
    for (const object of order) await put(opened.store, project, [object])
  }
  oracle.add(objects)
  for (const project of ['together', 'apart'])
    await assertClosures(
      opened,
      project,
      oracle,
      objects.map(({ id }) => id),
    )
  assert.deepEqual(
    (await download(opened.store, 'apart', 'liar'))?.ids,
    new Set(['liar', 'child', 'grandchild', 'other', 'below']),
  )
  await opened.store.close()
})

test('one walk serves all concurrent callers and ends when the last one leaves', async () => {
  const inner = memoryBackend()
  const setup = await openStore(inner)
  const graph = randomGraph(seeded(1), { objects: 2_000, paddingBytes: 2_000 })
  for (const objects of splitRandomly(seeded(2), graph, 12)) await put(setup.store, 'demo', objects)
  await setup.store.close()
  const held = gate()
  const reads: string[] = []
  const opened = await openPlanless(
    hooked(inner, async (call, name, work) => {
      if (call === 'read') {
        reads.push(name)
        await held.opened
      }
      return work()
    }),
  )
  const leaving = new AbortController()
  const ask = (signal: AbortSignal): Promise<unknown> => opened.store.closure('demo', graph[0].id, { signal })
  const left = ask(leaving.signal)
  const others = [ask(never), ask(never), ask(never)]
  await until(() => reads.length > 0)
  leaving.abort(new Error('the client left'))
  await within('leaving', assert.rejects(left, /the client left/))
  held.open()
  await Promise.all(others)
  assert.equal(new Set(reads).size, reads.length, 'each table is read once')
  await opened.store.close()
})

test('an abort ends a walk midway', async () => {
  const inner = memoryBackend()
  const setup = await openStore(inner)
  // Each object in a pack of its own, so that each step asks the storage.
  for (let i = 0; i < 40; i++) await put(setup.store, 'demo', [{ id: `c${i}`, children: referTo([`c${i + 1}`]) }])
  await setup.store.close()
  for (const at of [1, 5, 40]) {
    const controller = new AbortController()
    let calls = 0
    const opened = await openStore(
      hooked(inner, async (_call, _detail, work) => {
        if (++calls === at) controller.abort(new Error('the client left'))
        await turns(1)
        return work()
      }),
    )
    calls = 0
    await within(
      'an abort',
      assert.rejects(opened.store.closure('demo', 'c0', { signal: controller.signal }), /the client left/),
    )
    await opened.store.idle()
    await turns()
    const after = calls
    await turns()
    assert.ok(calls - after < 3, 'the walk goes on though nobody waits for it')
    assert.equal((await download(opened.store, 'demo', 'c0'))?.ids.size, 40)
    await opened.store.close()
  }
})

test('a caller after an acknowledged upload sees all of it, even during another walk of the root', async () => {
  for (const isPlanShared of [false, true]) {
    const applying = gate()
    const walking = gate()
    let walks = -1
    let isApplying = false
    const { store } = await openStore(
      hooked(memoryBackend(), async (call, key, work) => {
        if (writesIds(call, key) && key.endsWith('\0child\0')) {
          isApplying = true
          await applying.opened
        }
        const isLookup = call === 'getMany' && key.endsWith('\0child\0') && walks >= 0
        const result = await work()
        if (isLookup && ++walks === 1) await walking.opened
        return result
      }),
    )
    await put(store, 'demo', [{ id: 'root', children: referTo(['child']) }])
    const upload = put(store, 'demo', [{ id: 'child' }, { id: 'other' }])
    await until(() => isApplying)
    // The first one has seen that the child is not there, and is held up; then the upload is answered.
    walks = 0
    const early = download(store, 'demo', 'root')
    await until(() => walks === 1)
    applying.open()
    await upload
    const late = download(store, 'demo', 'root')
    if (isPlanShared) walking.open()
    assert.deepEqual((await within('a later walk', late))?.missing, [])
    walking.open()
    await early
    assert.deepEqual((await download(store, 'demo', 'root'))?.missing, [])
    await store.close()
  }
})

test('a storage fault at any call of a closure is an error, never a wrong answer, and passes', async () => {
  const random = seeded(9)
  const graph = randomGraph(random, { objects: 1_050, missingPercent: 3, paddingBytes: 100 })
  const oracle = new Oracle()
  oracle.add(graph)
  const inner = memoryBackend()
  const setup = await openStore(inner)
  for (const objects of splitRandomly(random, shuffled(random, graph), 4)) await put(setup.store, 'demo', objects)
  await setup.store.close()
  const { ids, missing } = oracle.closure(graph[0].id)
  for (const isWarm of [false, true]) {
    for (let at = 0; ; at++) {
      const fault = noFault()
      const opened = await openStore(faulty(inner, fault))
      if (isWarm) await download(opened.store, 'demo', graph[0].id)
      await opened.store.idle()
      Object.assign(fault, { calls: 0, at })
      const check = async (): Promise<void> => {
        const got = await download(opened.store, 'demo', graph[0].id)
        assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids))
        assert.deepEqual(got?.missing, missing)
      }
      await within('a download', check()).catch((error: unknown) => {
        const { code } = error as { code: string }
        assert.equal(code, 'storage_unavailable', String(error))
      })
      const wasHit = fault.calls > at
      fault.at = undefined
      await check()
      await opened.store.close()
      if (!wasHit) break
    }
  }
  await assertSound(inner)
})

test('with little memory, a walk skips the index of its packs and finds the same', async (t) => {
  const random = seeded(77)
  const below = randomGraph(random, { objects: 3_000, missingPercent: 5, claimPercent: 20, isHex: true })
  const graph = [...below, { id: 'root', children: referTo(below.map(({ id }) => id)) }]
  const oracle = new Oracle()
  const memory = divideMemory(380_000, { waitMs: PATIENCE_MS })
  const drop = t.mock.method(LocationIndex.prototype, 'drop')
  const plenty = await openStore()
  for (const objects of splitRandomly(random, graph, 6)) {
    oracle.add(objects)
    await put(plenty.store, 'demo', objects)
  }
  await plenty.store.idle()
  const { store } = await plenty.reopen({
    memory,
    newId: () => {
      throw new Error('no plans here')
    },
  })
  const root = 'root'
  const got = await download(store, 'demo', root)
  const { ids, missing } = oracle.closure(root)
  assert.ok(ids.size > 1_000, `${ids.size} objects`)
  assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids))
  assert.deepEqual(got?.missing, missing)
  assert.ok(drop.mock.callCount() > 0, 'there was memory for everything')
  await store.close()
  assert.equal(memory.requests.heldBytes, 0)
})

test('a walk looks up what a new version names before the names take more memory than a request may use', async () => {
  const random = seeded(78)
  const below: Made[] = Array.from({ length: 12_000 }, (_, at) => ({ id: `${at}`.padStart(32, 'e') }))
  const groups = Array.from({ length: 12 }, (_, at) => ({
    id: `group ${at}`,
    children: referTo(below.slice(at * 1_000, at * 1_000 + 2).map(({ id }) => id)),
    __closure: Object.fromEntries(shuffled(random, below).map(({ id }) => [id, 1])),
  }))
  const root = { id: 'root', children: referTo([...groups.map(({ id }) => id), 'nowhere']) }
  const opened = await openStore()
  for (let from = 0; from < below.length; from += 1_000)
    await put(opened.store, 'demo', shuffled(random, below).slice(from, from + 1_000))
  await put(opened.store, 'demo', below)
  await put(opened.store, 'demo', [...groups, root])
  const memory = divideMemory(1_500_000, { waitMs: PATIENCE_MS })
  const { store } = await opened.reopen({ memory })
  const got = await download(store, 'demo', 'root')
  assert.equal(got?.lines.length, below.length + groups.length + 1)
  assert.deepEqual(got.missing, ['nowhere'])
  await store.close()
  assert.equal(memory.requests.heldBytes, 0)
})
