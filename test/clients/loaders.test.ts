import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { building } from '../../bench/model/building.ts'
import { postBatch, type Target } from '../../bench/upload.ts'
import { HOSTS } from '../mounts/hosts.ts'
import { buildModel, type Model } from '../support/model.ts'
import { sendFromBrowser } from './browser-sender.ts'
import { load, type Loader } from './loaders.ts'
import { assertSameObjects, serveFor201, startServer } from './support.ts'

const LOADERS: readonly Loader[] = ['objectloader2', 'objectloader']
const OBJECTS = 20_000
const TIME_LIMIT = { timeout: 600_000 }
/** How long a loader that is known to wait for ever is watched, once it has complained. */
const WATCHED_MS = 3_000

async function loadsWhole(
  context: Parameters<typeof load>[0],
  loader: Loader,
  target: Target,
  model: Model,
): Promise<void> {
  const { received, given, end, complaints } = await load(context, loader, target, model.rootId)
  assert.deepEqual([end, complaints], ['done', ''])
  assertSameObjects(received, model.byId)
  // The older one decodes each piece of an answer by itself: a character that two pieces share is lost in it, whatever
  // sent them.
  const expected = new Map([...model.byId].map(([id, json]) => [id, JSON.stringify(JSON.parse(json))]))
  const damaged =
    loader === 'objectloader'
      ? [...given].filter(([id, json]) => json !== expected.get(id) && json.includes('\ufffd'))
      : []
  assert.ok(damaged.length < given.size / 100)
  assertSameObjects(new Map([...given, ...damaged.map(([id]) => [id, expected.get(id) ?? ''] as const)]), expected)
}

test('each loader downloads a browser upload byte for byte', TIME_LIMIT, async (t) => {
  const model = buildModel({ objects: OBJECTS })
  const target = await serveFor201(t, 'demo')
  assert.ok((await sendFromBrowser(target, model.objects)) > 50)
  for (const loader of LOADERS)
    await t.test(loader, TIME_LIMIT, (context) => loadsWhole(context, loader, target, model))
})

for (const [loader, hostName] of [
  ['objectloader2', 'fastify 5'],
  ['objectloader', 'koa 3'],
] as const) {
  test(`${loader} against ${hostName}, below a path`, TIME_LIMIT, async (t) => {
    const host = HOSTS.find(({ name }) => name === hostName)
    assert.ok(host)
    await using server = await startServer({ uploadStatus: 201 }, (service) => host.open(service, '/models'))
    const target = { url: `${server.url}/models`, token: 'any', projectId: 'demo' }
    const model = buildModel({ objects: 3_000 })
    await sendFromBrowser(target, model.objects)
    await loadsWhole(t, loader, target, model)
  })
}

for (const loader of LOADERS) {
  test(`${loader} receives all other objects if one is missing`, TIME_LIMIT, async (t) => {
    await using server = await startServer()
    const target = { url: server.url, token: 'any', projectId: 'demo' }
    const objects = [...building({ objects: 1_500 })].flat()
    const [lost, ...held] = objects
    await postBatch(target, gzipSync(`[${held.map(({ json }) => json).join()}]`))
    const { received, end, complaints, missing } = await load(
      t,
      loader,
      target,
      objects[objects.length - 1].id,
      loader === 'objectloader2' ? WATCHED_MS : undefined,
    )
    assertSameObjects(received, new Map(held.map(({ id, json }) => [id, json])))
    assert.ok(missing.includes('1'), 'the answer says that one is missing')
    if (loader === 'objectloader') assert.equal(end, 'done')
    else {
      // Its own defect, which no answer can avoid: it knows which one is missing, tells the console and goes on
      // waiting.
      assert.equal(end, 'still waiting')
      assert.match(complaints, new RegExp(`not downloaded: ${lost.id}`))
    }
    const strict = await fetch(`${target.url}/objects/demo/${objects[objects.length - 1].id}?strict`)
    assert.equal(strict.status, 409, 'who asks first, as the page on compatibility says, is told')
    assert.ok((await strict.text()).includes(lost.id))
  })

  test(`${loader} fails at once without the root or without access to it`, TIME_LIMIT, async (t) => {
    const target = await serveFor201(t, 'demo')
    for (const [chosen, message] of [
      [target, /404/],
      [{ ...target, token: 'nobody' }, /not have access/],
    ] as const) {
      const { end } = await load(t, loader, chosen, 'absent')
      assert.match(end, message)
    }
  })

  test(`${loader} receives objects that were uploaded without an id`, TIME_LIMIT, async (t) => {
    await using server = await startServer()
    const send = async (object: object): Promise<string> => {
      const answer = await fetch(`${server.url}/objects/demo`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify([object]),
      })
      return ((await answer.json()) as { assigned: { id: string }[] }).assigned[0].id
    }
    const child = await send({ speckle_type: 'Base', name: 'child' })
    const root = await send({
      speckle_type: 'Base',
      parts: [{ speckle_type: 'reference', referencedId: child }],
      __closure: { [child]: 1 },
    })
    const { given, end } = await load(t, loader, { url: server.url, token: 'any', projectId: 'demo' }, root)
    assert.equal(end, 'done')
    assert.deepEqual(new Set(given.keys()), new Set([root, child]))
  })
}
