import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdSet } from '../../src/object/id-set.ts'
import type { Selection } from '../../src/object/selection.ts'
import { plainGraphStore } from '../../src/store/plain/plain-store.ts'
import type { ObjectStore } from '../../src/index.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { type Ask, bothCores, errorOf, idList, jsonUpload, openService } from './served.ts'

const reference = (id: string): { referencedId: string } => ({ referencedId: id })
const signal = new AbortController().signal

async function idsOf(selection: Selection | undefined): Promise<readonly string[]> {
  assert.ok(selection)
  let text = ''
  for await (const lines of selection.lines({ signal })) text += Buffer.from(lines).toString()
  selection.release()
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => line.slice(0, line.indexOf('\t')))
}

async function storeWith(objects: readonly { readonly id: string }[]): Promise<PlainObjectStore> {
  const store = new PlainObjectStore()
  const service = openService({ store })
  const answer = await service.fetch(new Request('http://x/objects/p', jsonUpload(objects)))
  assert.equal(answer.status, 200)
  return store
}

test('the endpoints need only three methods of a store', async (t) => {
  for (const [core, ask] of await bothCores(t, () => ({ store: new PlainObjectStore() }))) {
    await fiveEndpoints(ask, core)
  }
})

async function fiveEndpoints(ask: Ask, core: string): Promise<void> {
  const objects = [
    { id: 'root', deep: [{ at: reference('a') }], __closure: { b: 1, 'not held': 2 } },
    { id: 'a', c: reference('gone') },
    { id: 'b' },
  ]
  const summary = await (await ask('/objects/p', jsonUpload([...objects, { id: 'a' }]))).json()
  assert.deepEqual(
    summary,
    { objects: 3, created: 3, differing: 0, rewritten: 0, assigned: [], assignedCount: 0 },
    core,
  )
  assert.deepEqual(
    await (await ask('/objects/p', jsonUpload(objects))).json(),
    { objects: 3, created: 0, differing: 0, rewritten: 0, assigned: [], assignedCount: 0 },
    core,
  )
  assert.deepEqual(await (await ask('/api/diff/p', idList(['a', 'x']))).json(), { a: true, x: false }, core)
  assert.deepEqual(await (await ask('/objects/p/a/single')).json(), objects[1], core)
  const list = await ask('/api/getobjects/p', idList(['b', 'x', 'a', 'b', '\u0000', 'y'.repeat(600)]))
  assert.equal(list.headers.get('stowage-missing-objects'), '3', core)
  assert.deepEqual(await list.json(), [objects[2], objects[1]], core)
  const graph = await ask('/objects/p/root')
  // What is claimed and not held is no loss; what is missing is.
  assert.equal(graph.headers.get('stowage-missing-objects'), '1', core)
  assert.deepEqual(await graph.json(), objects, core)
  assert.equal((await errorOf(await ask('/objects/p/root?have=a'))).code, 'not_supported', core)
  const strict = (await (await ask('/api/getobjects/p?strict', idList(['a', '\u0000', 'gone']))).json()) as {
    ids: string[]
  }
  assert.deepEqual(strict.ids, ['\u0000', 'gone'], core)
}

test('cycles, chains and wide parents end, with each object once and the root first', async () => {
  const chain = Array.from({ length: 1_500 }, (_, n) => ({ id: `c${n}`, next: reference(`c${(n + 1) % 1_500}`) }))
  const wide = [
    { id: 'wide', children: Array.from({ length: 3_000 }, (_, n) => reference(`w${n}`)) },
    ...Array.from({ length: 3_000 }, (_, n) => ({ id: `w${n}`, up: reference('wide') })),
  ]
  const store = plainGraphStore(await storeWith([...chain, ...wide]))
  const around = await idsOf(await store.closure('p', 'c7', { signal }))
  assert.deepEqual([around.length, new Set(around).size, around[0]], [1_500, 1_500, 'c7'])
  const fan = await idsOf(await store.closure('p', 'wide', { signal }))
  assert.deepEqual([fan.length, new Set(fan).size, fan[0]], [3_001, 3_001, 'wide'])
  assert.equal(await store.closure('p', 'none', { signal }), undefined)
  assert.equal(await store.closure('q', 'c7', { signal }), undefined)
})

test('a graph over the limit is refused before its first byte', async () => {
  const store = await storeWith([
    { id: 'root', children: Array.from({ length: 10 }, (_, n) => reference(`m${n}`)) } as { id: string },
  ])
  assert.ok(await plainGraphStore(store, { closureObjectsMax: 11 }).closure('p', 'root', { signal }))
  await assert.rejects(plainGraphStore(store, { closureObjectsMax: 10 }).closure('p', 'root', { signal }), {
    code: 'not_supported',
  })
})

test('a store with descendants is asked for them instead of walked', async () => {
  const plain = await storeWith([{ id: 'root' }, { id: 'a' }, { id: 'b' }])
  const store: ObjectStore = {
    put: (projectId, batches) => plain.put(projectId, batches),
    has: (projectId, ids) => plain.has(projectId, ids),
    get: (projectId, ids, options) => plain.get(projectId, ids, options),
    async *descendants() {
      yield ['b', 'gone']
      yield ['a']
    },
  }
  const selection = await plainGraphStore(store).closure('p', 'root', { signal })
  assert.deepEqual([selection?.missing, await selection?.missingIds(9)], [1, ['gone']])
  assert.deepEqual(await idsOf(selection), ['root', 'b', 'a'])
})

test("a host's own texts are brought into one line, and vanished objects are noticed", async () => {
  const texts = new Map([
    ['a', '{\n\t"id": "a",\n\t"n": 1.0\n}'],
    ['b', '{"id":"b"}'],
  ])
  const store: ObjectStore = {
    put: () => Promise.reject(new Error('read only')),
    has: (_, ids) => Promise.resolve(ids.map((id) => texts.has(id))),
    async *get(_, ids) {
      yield ids.flatMap((id) => (texts.has(id) ? [{ id, json: Buffer.from(texts.get(id) ?? '') }] : []))
    },
  }
  const graphs = plainGraphStore(store)
  const ids = new IdSet()
  for (const id of ['a', 'b']) ids.add(Buffer.from(id))
  const selection = await graphs.select('p', ids, { signal })
  let text = ''
  for await (const lines of selection.lines({ signal })) text += Buffer.from(lines).toString()
  assert.equal(text, 'a\t{"id": "a","n": 1.0}\nb\t{"id":"b"}\n')
  const vanishing = await graphs.select('p', ids, { signal })
  texts.delete('b')
  await assert.rejects(idsOf(vanishing), { code: 'storage_unavailable' })
  await assert.rejects(graphs.remove('p'), { code: 'not_supported' })
  assert.throws(() => graphs.projects(), { code: 'not_supported' })
})
