import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Level } from 'level'
import {
  type ClientOptions,
  type Fetch,
  type GraphProgress,
  memoryCache,
  type ObjectCache,
  type Project,
} from '../../src/client/index.ts'
import { levelCache } from '../../src/client/level-cache.ts'
import { buildModel } from '../support/model.ts'
import { byId, collect, idsOf, serviceAndClient } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

const FIRST = buildModel({ objects: 900 })
const SECOND = buildModel({ objects: 900, revision: 1 })
const changed = [...SECOND.byId.keys()].filter((id) => !FIRST.byId.has(id)).length

/** A project with both models, asked by a client with a cache; and the paths of what it asked. */
async function cachedProject(
  t: Parameters<typeof serviceAndClient>[0],
  cache: ObjectCache,
  models = [FIRST, SECOND],
): Promise<{
  url: string
  project: Project
  asked: string[]
  withOptions: (options: Partial<ClientOptions>) => Project
}> {
  const { url, project, withOptions } = await serviceAndClient(t)
  for (const model of models) await project.upload(model.objects)
  const asked: string[] = []
  const noting: Fetch = (url, init) => (
    asked.push(
      new URL(url).pathname.split('/').slice(1, 3).join('/') + new URL(url).search.replace(/have=[^&]*/g, 'have'),
    ),
    fetch(url, init)
  )
  return { url, project: withOptions({ cache, fetch: noting }), asked, withOptions }
}

for (const kind of ['memory', 'level'] as const) {
  test(`with a cache in ${kind}, a graph downloads once, and the next version only as new objects`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'stowage-cache-'))
    await using level = kind === 'level' ? levelCache({ path: folder }) : undefined
    t.after(() => rm(folder, { recursive: true }))
    const { project, asked } = await cachedProject(t, level ?? memoryCache())
    let last: GraphProgress | undefined
    const onProgress = (progress: GraphProgress): void => void (last = progress)
    assert.deepEqual(byId(await collect(project.graphTexts(FIRST.rootId, { onProgress }))), FIRST.byId)
    assert.deepEqual(asked.splice(0), ['objects/demo?archive=gzip'])
    assert.equal(last?.cached, 0)

    const again = await collect(project.graphTexts(FIRST.rootId, { onProgress }))
    assert.deepEqual([again[0].id, asked, last?.cached], [FIRST.rootId, [], 900])
    assert.deepEqual(byId(again), FIRST.byId)

    const second = await collect(project.graphTexts(SECOND.rootId, { onProgress }))
    assert.equal(second[0].id, SECOND.rootId)
    assert.deepEqual(byId(second), SECOND.byId)
    assert.deepEqual(asked.splice(0), ['objects/demo?archive=gzip&have&delta='])
    assert.deepEqual([last?.objects, last?.cached], [900, 900 - changed])

    await level?.clear()
    assert.equal((await collect(project.graphTexts(SECOND.rootId))).length, 900)
    assert.deepEqual(await project.get(FIRST.rootId), JSON.parse(FIRST.byId.get(FIRST.rootId) ?? ''))
  })
}

test('without closures, a difference to cached roots is requested by its remembered digest', async (t) => {
  const bare = [buildModel({ objects: 900, closure: false }), buildModel({ objects: 900, closure: false, revision: 1 })]
  const { project, asked } = await cachedProject(t, memoryCache(), bare)
  await collect(project.graphTexts(bare[0].rootId))
  asked.length = 0
  let last: GraphProgress | undefined
  const texts = await collect(project.graphTexts(bare[1].rootId, { onProgress: (progress) => (last = progress) }))
  assert.deepEqual(byId(texts), bare[1].byId)
  assert.equal(texts[0].id, bare[1].rootId)
  assert.deepEqual(asked, ['objects/demo?archive=gzip&have&delta='])
  assert.ok((last?.cached ?? 0) > 750 && (last?.receivedBytes ?? 0) < 40_000, JSON.stringify(last))
})

test('an explicit difference also uses the digest', async (t) => {
  const { project } = await cachedProject(t, memoryCache())
  await collect(project.graphTexts(FIRST.rootId))
  let outcome: string | undefined
  const texts = await collect(
    project.graphTexts(SECOND.rootId, {
      have: [FIRST.rootId],
      onInfo: ({ have }) => (outcome = have.get(FIRST.rootId)),
    }),
  )
  assert.deepEqual([outcome, texts.length], ['subtracted', changed])
})

test('a cache that lost objects costs a request and no object, and an unused one is not asked', async (t) => {
  const cache = memoryCache({ charactersMax: 600_000 })
  const { project, asked } = await cachedProject(t, cache)
  for (let round = 0; round < 3; round++)
    assert.deepEqual(byId(await collect(project.graphTexts(FIRST.rootId))), FIRST.byId)
  asked.length = 0
  await collect(project.graphTexts(FIRST.rootId, { cache: false }))
  assert.deepEqual(asked, ['objects/demo?archive=gzip'])
  assert.throws(() => memoryCache({ charactersMax: -1 }), RangeError)
})

test('a graph with missing objects is never cached as complete, and later objects are found', async (t) => {
  const { project } = await cachedProject(t, memoryCache(), [])
  const reference = (referencedId: string): object => ({ speckle_type: 'reference', referencedId })
  await project.upload([{ id: 'a' }, { id: 'root', at: [reference('a'), reference('late')] }])
  for (let round = 0; round < 2; round++)
    assert.deepEqual(idsOf(await collect(project.graph('root'))).sort(), ['a', 'root'])
  await assert.rejects(collect(project.graph('root', { strict: true })), { code: 'objects_missing' })
  await project.upload([{ id: 'late', below: reference('a') }])
  assert.deepEqual(idsOf(await collect(project.graph('root', { strict: true }))).sort(), ['a', 'late', 'root'])
  await assert.rejects(collect(project.graph('nobody')), { code: 'not_found', statusCode: 404 })
})

test('an absent root is an error even if it is cached, and missing objects are reported even if others are cached', async (t) => {
  const cache = memoryCache()
  const { project, withOptions } = await cachedProject(t, cache, [])
  const reference = (referencedId: string): object => ({ speckle_type: 'reference', referencedId })
  const [first, ...others] = ['a', 'b', 'c', 'd', 'gone']
  await project.upload([...others.slice(0, -1), first].map((id) => ({ id })))
  await project.upload([
    {
      id: 'root',
      at: [first, ...others].map(reference),
      __closure: Object.fromEntries([first, ...others].map((id) => [id, 1])),
    },
  ])
  const told: [number | undefined, number][] = []
  for (let round = 0; round < 2; round++)
    assert.equal(
      (await collect(project.graph('root', { onInfo: ({ objects, missing }) => told.push([objects, missing]) })))
        .length,
      5,
    )
  assert.deepEqual(told, [
    [5, 1],
    [5, 1],
  ])
  const forgetful: ObjectCache = {
    getMany: async (_, ids) => ids.map(() => undefined),
    hasMany: async (_, ids) => ids.map(() => false),
    putMany: async () => undefined,
    roots: async () => [{ id: 'root' }],
    putRoot: async () => undefined,
  }
  const empty = await serviceAndClient(t)
  await assert.rejects(collect(empty.withOptions({ cache: forgetful }).graph('root')), {
    code: 'not_found',
    statusCode: 404,
  })
  await assert.rejects(collect(withOptions({ cache: forgetful }).graph('..')), { code: 'invalid_id' })
})

test('a wrong cached object counts as lost, and with hashes a slightly different one does too', async (t) => {
  const cache = memoryCache()
  const { url, project } = await cachedProject(t, cache, [FIRST])
  await collect(project.graphTexts(FIRST.rootId))
  const scope = `${url}\0demo`
  const ids = [...FIRST.byId.keys()]
  const poison = async (json: (id: string) => string, some = [ids[3], ids[4], FIRST.rootId]): Promise<void> =>
    cache.putMany(
      scope,
      some.map((id) => ({ id, json: json(id) })),
    )
  for (const json of ['garbage', 'null', '{"id":"another"}', '[]', '', '{"id":']) {
    await poison(() => json)
    assert.deepEqual(byId(await collect(project.graphTexts(FIRST.rootId))), FIRST.byId, json)
    await poison(() => json)
    assert.deepEqual(await project.getText(ids[3]), { id: ids[3], json: FIRST.byId.get(ids[3]) })
  }
  await poison((id) => `{"id":"${id}",broken}`)
  assert.deepEqual(byId(await collect(project.graphTexts(FIRST.rootId))), FIRST.byId)
  await poison((id) => (FIRST.byId.get(id) ?? '').replace(/\}$/, ',"more":1}'))
  assert.deepEqual(byId(await collect(project.graphTexts(FIRST.rootId, { verifyIds: true }))), FIRST.byId)
})

test('a cache on disk never returns changed data, and reports why it cannot be opened', async (t) => {
  const folder = temporaryFolder(t)
  const cache = levelCache({ path: folder })
  await cache.putMany('s', [
    { id: 'a', json: '{"id":"a"}' },
    { id: 'b', json: '{"id":"b"}' },
  ])
  await Promise.all(['x', 'y', 'z'].map((id) => cache.putRoot('s', { id })))
  assert.deepEqual(
    await cache.roots('s'),
    [{ id: 'z' }, { id: 'y' }, { id: 'x' }],
    'none is lost that comes at the same time',
  )
  const second = levelCache({ path: folder })
  await assert.rejects(second.getMany('s', ['a']), {
    name: 'ClientError',
    code: 'storage_unavailable',
    message: /another process/,
  })
  await second.close()
  await cache.close()
  await assert.rejects(cache.getMany('s', ['a']), { code: 'storage_unavailable', message: /it is closed/ })

  const database = new Level(folder)
  await database.put('o\0s\0a', ((await database.get('o\0s\0a')) ?? '').replace('"a"', '"e"'))
  await database.put('o\0s\0c', (await database.get('o\0s\0b')) ?? '')
  await database.put('r\0s', 'nonsense')
  await database.close()
  const closing = levelCache({ path: folder })
  const reads = Array.from({ length: 20 }, async (_, n) => {
    for (let turn = 0; turn < n; turn++) await Promise.resolve()
    return closing.getMany('s', ['b'])
  })
  const [, ...outcomes] = await Promise.allSettled([closing.close(), ...reads])
  for (const outcome of outcomes)
    assert.ok(outcome.status === 'fulfilled' || /it is closed/.test(String(outcome.reason)), JSON.stringify(outcome))

  const again = levelCache({ path: folder })
  assert.deepEqual(await again.getMany('s', ['a', 'b', 'c']), [undefined, '{"id":"b"}', undefined])
  assert.deepEqual(await again.roots('s'), [])
  await again.close()
  await writeFile(join(folder, 'CURRENT'), 'nonsense\n')
  await using damaged = levelCache({ path: folder })
  await assert.rejects(damaged.roots('s'), { code: 'storage_unavailable', message: /cannot be used: .*can be removed/ })
})

test('a cache keeps projects apart', async (t) => {
  const cache = memoryCache()
  const [one, two] = [await cachedProject(t, cache, []), await cachedProject(t, cache, [])]
  await one.project.upload([{ id: 'same', of: 1 }])
  await two.project.upload([{ id: 'same', of: 2 }])
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(await one.project.get('same'), { id: 'same', of: 1 })
    assert.deepEqual(await two.project.get('same'), { id: 'same', of: 2 })
  }
})
