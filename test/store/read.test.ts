import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { Bitmap } from '../../src/store/bytes/bitmap.ts'
import { faulty, noFault } from './failures.ts'
import { randomGraph, referTo, seeded, shuffled, splitRandomly } from './graphs.ts'
import {
  assertListed,
  collected,
  download,
  heldOf,
  idSet,
  lineOf,
  listed,
  type Made,
  never,
  openStore,
  put,
  within,
} from './support.ts'

const random = seeded(41)
const GRAPH: readonly Made[] = randomGraph(random, { objects: 500, paddingBytes: 800 })
const byId: ReadonlyMap<string, Made> = new Map(GRAPH.map((object) => [object.id, object]))

function expected(ids: readonly string[]): string[] {
  return [...new Set(ids)]
    .flatMap((id) => {
      const object = byId.get(id)
      return object === undefined ? [] : [lineOf(object)]
    })
    .sort()
}

test('any list of ids returns the held objects once each and names the missing ones', async () => {
  const { store } = await openStore()
  for (const objects of splitRandomly(random, shuffled(random, GRAPH), 6)) await put(store, 'demo', objects)
  for (const share of [0, 1, 3, 30, 200, 500]) {
    const ids = [
      ...shuffled(random, GRAPH)
        .slice(0, share)
        .map(({ id }) => id),
      'nowhere',
      'nobody',
      'nowhere',
    ]
    const set = idSet(shuffled(random, [...ids, ...ids]))
    const selection = await store.select('demo', set, { signal: never })
    assert.equal(selection.objects, share)
    assert.equal(selection.missing, 2)
    assert.deepEqual([...(await selection.missingIds(10))].sort(), ['nobody', 'nowhere'])
    assert.equal((await selection.missingIds(1)).length, 1)
    assert.equal(selection.plan, undefined)
    selection.release()
    assert.deepEqual((await listed(store, 'demo', ids)).toSorted(), expected(ids))
  }
  assert.deepEqual(await listed(store, 'nowhere', ['n1']), [])
  await store.close()
})

test('lists of thousands of ids are read over many packs', async () => {
  const { store } = await openStore()
  const many = Array.from({ length: 5_500 }, (_, i): Made => ({ id: `m${i}` }))
  for (const objects of splitRandomly(random, shuffled(random, many), 9)) await put(store, 'demo', objects)
  const half = many.filter((_, i) => i % 2 === 0)
  await assertListed(store, 'demo', half)
  assert.equal(
    (await heldOf(store, 'demo', [...half.map(({ id }) => `${id}x`), ...many.map(({ id }) => id)])).size,
    many.length,
  )
  await store.close()
})

test('a storage fault during a list or a diff is an error and never a wrong answer, and the next request succeeds', async () => {
  const inner = memoryBackend()
  const setup = await openStore(inner)
  for (const objects of splitRandomly(random, shuffled(random, GRAPH), 4)) await put(setup.store, 'demo', objects)
  await setup.store.close()
  const ids = [...GRAPH.filter((_, i) => i % 3 === 0).map(({ id }) => id), 'nowhere']
  for (const isWarm of [false, true]) {
    for (let at = 0; ; at++) {
      const fault = noFault()
      const { store } = await openStore(faulty(inner, fault))
      const ask = async (): Promise<void> => {
        assert.equal((await heldOf(store, 'demo', ids)).size, ids.length - 1)
        assert.deepEqual((await listed(store, 'demo', ids)).toSorted(), expected(ids))
        assert.deepEqual((await collected(store.projects())).flat(), ['demo'])
      }
      await store.idle()
      if (isWarm) await ask()
      Object.assign(fault, { calls: 0, at })
      await within('a list', ask()).catch((error: unknown) =>
        assert.equal((error as { code: string }).code, 'storage_unavailable', String(error)),
      )
      const wasHit = fault.calls > at
      fault.at = undefined
      await ask()
      await store.close()
      if (!wasHit) break
    }
  }
})

test('a read that stops early or is aborted ends at once', async () => {
  const { store } = await openStore()
  const big = randomGraph(random, { objects: 2_000, paddingBytes: 4_000 })
  for (const objects of splitRandomly(random, big, 3)) await put(store, 'demo', objects, 200)
  const ids = idSet(big.map(({ id }) => id))
  for (const way of ['lines', 'fragments'] as const) {
    const selection = await store.select('demo', ids, { signal: never })
    for await (const some of selection[way]({ signal: never })) {
      assert.ok(some.length > 0)
      break
    }
    const controller = new AbortController()
    const reading = (async () => {
      for await (const some of selection[way]({ signal: controller.signal }))
        if (some.length > 0) controller.abort(new Error('the client left'))
    })()
    await within('an abort', assert.rejects(reading, /the client left/))
    selection.release()
  }
  await assert.rejects(store.select('demo', ids, { signal: AbortSignal.abort(new Error('gone')) }), /gone/)
  await assert.rejects(store.has('demo', ids, { signal: AbortSignal.abort(new Error('gone')) }), /gone/)
  await store.close()
})

test('small stored objects with large texts are sent in bounded buffers', async () => {
  const { store } = await openStore()
  const zeros = '0'.repeat(1_500_000)
  const objects: Made[] = [
    { id: 'root', children: referTo([0, 1, 2, 3, 4, 5, 6, 7].map((i) => `z${i}`)) },
    ...[0, 1, 2, 3, 4, 5, 6, 7].map((i) => ({ id: `z${i}`, zeros })),
  ]
  await put(store, 'demo', [...objects, { id: 'apart' }])
  for (let pass = 0; pass < 2; pass++) {
    const selection = await store.closure('demo', 'root', { signal: never })
    assert.ok(selection !== undefined)
    let most = 0
    for await (const lines of selection.lines({ signal: never })) most = Math.max(most, lines.length)
    assert.ok(
      most < 5 * 1_048_576,
      `${most} bytes at once, ${selection.plan === undefined ? 'without' : 'with'} a plan`,
    )
    selection.release()
    await store.idle()
  }
  assert.equal((await download(store, 'demo', 'root'))?.ids.size, 9)
  await store.close()
})

test('an object in its own block is read at every position of its pack', async () => {
  const { store } = await openStore()
  const large = (i: number): Made => ({
    id: `large${i}`,
    noise: Array.from({ length: 3_000 }, () => random(2 ** 32).toString(36)).join(''),
  })
  const objects: Made[] = [large(0), { id: 'a' }, { id: 'b' }, large(1), large(2), { id: 'c' }, large(3)]
  await put(store, 'demo', objects)
  for (let chosen = 1; chosen < 2 ** objects.length; chosen++) {
    const bits = new Bitmap(Uint8Array.of(chosen))
    const wanted = objects.filter((_, i) => bits.has(i))
    await assertListed(store, 'demo', wanted)
  }
  await store.close()
})
