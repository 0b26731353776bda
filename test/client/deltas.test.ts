import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import {
  type TextWithBase,
  type Fetch,
  memoryCache,
  type ObjectCache,
  type ObjectText,
  type Project,
} from '../../src/client/index.ts'
import { DELTA_MEDIA_TYPE } from '../../src/delta/delta.ts'
import { buildModel, type Model } from '../support/model.ts'
import { breakingProxy, byId, collect, serviceAndClient } from './support.ts'

const OBJECTS = 1_500

/**
 * Two versions of a model, in which one object in a hundred differs, spread over all of it, and all that refers to one.
 * Roots with closures.
 */
function versions(changed = 0.01): readonly [older: Model, newer: Model] {
  const options = { objects: OBJECTS, changed }
  return [buildModel(options), buildModel({ ...options, revision: 1 })]
}

function differenceOf(older: Model, newer: Model): Map<string, string> {
  return new Map([...newer.byId].filter(([id]) => !older.byId.has(id)))
}

/** The objects of the newer version with those that stood in their place in the older one. */
function based(older: Model, newer: Model): (ObjectText | TextWithBase)[] {
  return newer.objects.map(({ id, json }, at) => ({ id, json, base: older.objects[at] }))
}

/** Counts bytes of answers as they would be on the wire, and requests with deltas. */
function counting(): { readonly fetch: Fetch; down: number; deltaRequests: number } {
  const counts = {
    down: 0,
    deltaRequests: 0,
    fetch: (async (url, init) => {
      if (new Headers(init.headers).get('content-type') === DELTA_MEDIA_TYPE) counts.deltaRequests += 1
      const answer = await fetch(url, init)
      const bytes = Buffer.from(await answer.arrayBuffer())
      counts.down += bytes[0] === 0x1f ? bytes.length : gzipSync(bytes).length
      return new Response(bytes, { status: answer.status, headers: answer.headers })
    }) satisfies Fetch,
  }
  return counts
}

/** What it costs a client with the older version in its cache to get the newer one. */
async function difference(
  project: (fetch: Fetch) => Project,
  newer: Model,
): Promise<{ readonly texts: Map<string, string>; readonly bytes: number }> {
  const counts = counting()
  const texts = byId(await collect(project(counts.fetch).graphTexts(newer.rootId)))
  return { texts, bytes: counts.down }
}

async function cacheWith(project: (cache: ObjectCache) => Project, model: Model): Promise<ObjectCache> {
  const cache = memoryCache()
  await collect(project(cache).graphTexts(model.rootId))
  return cache
}

test('a second version arrives as deltas on the cached one, in less than 5% of its bytes', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  const [older, newer] = versions()
  await project.upload(older.objects)
  await project.upload(newer.objects)
  const all = counting()
  await collect(withOptions({ fetch: all.fetch }).graphTexts(newer.rootId))
  const cache = await cacheWith((cache) => withOptions({ cache }), older)
  const { texts, bytes } = await difference((fetch) => withOptions({ cache, fetch }), newer)
  assert.deepEqual(texts, newer.byId)
  assert.ok(bytes < all.down * 0.05, `${bytes} of ${all.down} bytes`)
})

test('an object whose base is missing or different is requested whole', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  const [older, newer] = versions()
  await project.upload(older.objects)
  await project.upload(newer.objects)
  const expected = differenceOf(older, newer)
  for (const spoilt of [undefined, '{}', `${older.byId.get(older.rootId)} `]) {
    const bases = {
      getMany: async (ids: readonly string[]) => ids.map((id) => (id === older.rootId ? spoilt : older.byId.get(id))),
    }
    assert.deepEqual(
      byId(await collect(withOptions({}).graphTexts(newer.rootId, { have: [older.rootId], bases }))),
      expected,
    )
  }
})

test('a root that the cache holds and the server lost does no harm: common objects are not sent', async (t) => {
  const { service, withOptions } = await serviceAndClient(t)
  const [older, newer] = versions()
  await withOptions({}).upload(older.objects)
  const cache = await cacheWith((cache) => withOptions({ cache }), older)
  await service.project('demo').remove()
  await withOptions({}).upload(newer.objects)
  const asked: string[] = []
  const noting: Fetch = (url, init) => (asked.push(`${init.method} ${new URL(url).pathname}`), fetch(url, init))
  assert.deepEqual(byId(await collect(withOptions({ cache, fetch: noting }).graphTexts(newer.rootId))), newer.byId)
  const graph = `GET /objects/demo/${newer.rootId}`
  assert.deepEqual(asked, [graph, `${graph}/single`, 'POST /api/getobjects/demo'])
})

test('an interrupted download of deltas resumes, and no object arrives twice', async (t) => {
  const { project, port, withOptions } = await serviceAndClient(t)
  const [older, newer] = versions(0.3)
  await project.upload(older.objects)
  await project.upload(newer.objects)
  const bases = { getMany: async (ids: readonly string[]) => ids.map((id) => older.byId.get(id)) }
  const proxy = await breakingProxy(t, port, 15_000)
  const got = await collect(withOptions({ url: proxy.url }).graphTexts(newer.rootId, { have: [older.rootId], bases }))
  assert.deepEqual(byId(got), differenceOf(older, newer))
  assert.ok(proxy.connections() > 1)
})

test('objects upload as deltas on older ones, in less than 5% of the bytes, and download unchanged', async (t) => {
  const { project } = await serviceAndClient(t)
  const [older, newer] = versions()
  const whole = await project.upload(older.objects)
  const result = await project.upload(based(older, newer))
  const expected = differenceOf(older, newer)
  assert.equal(result.sent, expected.size)
  assert.ok(result.deltas >= expected.size * 0.9, `${result.deltas} of ${expected.size}`)
  assert.ok(result.wireBytes < whole.wireBytes * 0.05, `${result.wireBytes} of ${whole.wireBytes} bytes`)
  assert.deepEqual(byId(await collect(project.graphTexts(newer.rootId))), newer.byId)
})

test('a server that refuses deltas receives whole objects, and is not asked again each time', async (t) => {
  const { project, withOptions } = await serviceAndClient(t)
  const [older, newer] = versions()
  await project.upload(older.objects)
  const counts = counting()
  const refusing: Fetch = (url, init) =>
    new Headers(init.headers).get('content-type') === DELTA_MEDIA_TYPE
      ? counts.fetch(`${url}/nowhere`, init)
      : counts.fetch(url, init)
  const result = await withOptions({ fetch: refusing }).upload(based(older, newer), {
    batchBytes: 1_000,
    concurrency: 1,
  })
  assert.equal(result.deltas, 0)
  assert.equal(counts.deltaRequests, 1)
  assert.deepEqual(byId(await collect(project.graphTexts(newer.rootId))), newer.byId)
})

test('a base that the server lacks or holds otherwise does no harm, and forms never contain deltas', async (t) => {
  const { project } = await serviceAndClient(t)
  const json = `{"id":"new","text":"${'0123456789'.repeat(100)}"}`
  const base = { id: 'old', json: json.replace('"new"', '"old"') }
  const { deltas, created } = await project.upload([{ id: 'new', json, base }])
  assert.deepEqual({ deltas, created }, { deltas: 0, created: 1 })
  await project.upload([{ id: 'old', json: '{"id":"old"}' }])
  const other = json.replace('"new"', '"other"')
  assert.equal((await project.upload([{ id: 'other', json: other, base }])).deltas, 0)
  assert.equal((await project.getText('other'))?.json, other)
  assert.equal(
    (
      await project.upload([{ id: 'third', json: json.replace('"new"', '"third"'), base: { id: 'new', json } }], {
        body: 'multipart',
      })
    ).deltas,
    0,
  )
  assert.equal(
    (await project.upload([{ id: 'fourth', json: json.replace('"new"', '"fourth"'), base: { id: 'new', json } }]))
      .deltas,
    1,
  )
})

test('a received value that changes is sent as a delta', async (t) => {
  const { withOptions } = await serviceAndClient(t)
  const project = withOptions({ cache: memoryCache() })
  const doors = Array.from({ length: 500 }, (_, at) => ({ name: `door ${at}`, note: 'as the one before '.repeat(20) }))
  const first = await project.send({ '@doors': doors })
  const received = await project.receive<{ '@doors': { name: string }[] }>(first.root)
  received['@doors'][250].name = 'another one'
  const second = await project.send(received)
  assert.deepEqual([second.sent, second.deltas], [2, 2])
  assert.ok(second.wireBytes < first.wireBytes * 0.1, `${second.wireBytes} of ${first.wireBytes} bytes`)
  const again = await withOptions({}).receive<{ '@doors': { name: string }[] }>(second.root)
  assert.deepEqual(
    again['@doors'].map(({ name }) => name),
    doors.with(250, { ...doors[250], name: 'another one' }).map(({ name }) => name),
  )
})
