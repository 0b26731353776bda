import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../src/client/index.ts'
import type { ProjectUsage } from '../../src/automation-server/index.ts'
import { automated, type Fixture, uploadObjects } from './support.ts'

const DAY_MS = 86_400_000

/** A text of so many bytes of JSON. */
function sized(id: string, references: readonly string[], bytes: number): object {
  const object = { id, children: references.map((referencedId) => ({ referencedId })), pad: '' }
  return { ...object, pad: 'x'.repeat(bytes - JSON.stringify(object).length) }
}

async function usageOf({ ask }: Fixture, projectId = 'p'): Promise<ProjectUsage> {
  const { status, json } = await ask('GET', `${projectId}/usage`)
  assert.equal(status, 200)
  return json as unknown as ProjectUsage
}

test('a project reports the storage of itself, its models and its versions, shared and exclusive', async (t) => {
  const fixture = automated(t)
  const { service, extension } = fixture
  // a1 -> (x, s), a2 -> (y, s), b1 -> (s, z); w is nobody's. Two uploads, so that closures cross packs.
  await uploadObjects(service, 'p', [
    sized('s', [], 100),
    sized('x', [], 200),
    sized('y', [], 300),
    sized('w', [], 400),
  ])
  await uploadObjects(service, 'p', [
    sized('z', [], 500),
    sized('a1', ['x', 's'], 600),
    sized('a2', ['y', 's', 'x'], 700),
    sized('b1', ['s', 'z'], 800),
  ])
  const { models, versions } = extension.project('p')
  const a = await models.create({ name: 'A' })
  const b = await models.create({ name: 'B' })
  const a1 = await versions.create(a.id, { rootObjectId: 'a1', message: '' })
  const a2 = await versions.create(a.id, { rootObjectId: 'a2', message: '' })
  const b1 = await versions.create(b.id, { rootObjectId: 'b1', message: '' })
  const usage = await usageOf(fixture)
  assert.deepEqual(
    [usage.objects, usage.jsonBytes, usage.unreferencedObjects, usage.unreferencedJsonBytes],
    [8, 3_600, 1, 400],
  )
  assert.ok(usage.storedBytes > 0)
  // Made within a millisecond, their ids may sort either way.
  const ofModel = new Map(usage.models.map((model) => [model.modelId, model]))
  assert.deepEqual(
    [ofModel.get(a.id), ofModel.get(b.id), ofModel.size],
    [
      { modelId: a.id, versions: 2, objects: 5, jsonBytes: 1_900, ownObjects: 4, ownJsonBytes: 1_800 },
      { modelId: b.id, versions: 1, objects: 3, jsonBytes: 1_400, ownObjects: 2, ownJsonBytes: 1_300 },
      2,
    ],
  )
  const byId = new Map(
    usage.roots.map(({ id, objects, jsonBytes, ownObjects, ownJsonBytes }) => [
      id,
      [objects, jsonBytes, ownObjects, ownJsonBytes],
    ]),
  )
  assert.deepEqual(byId.get(a1.id), [3, 900, 1, 600])
  assert.deepEqual(byId.get(a2.id), [4, 1_300, 2, 1_000])
  assert.deepEqual(byId.get(b1.id), [3, 1_400, 2, 1_300])
  await uploadObjects(service, 'p', [sized('late', [], 1_000)])
  assert.equal((await usageOf(fixture)).unreferencedJsonBytes, 1_400, 'an upload is counted')
  await versions.delete(b.id, b1.id)
  assert.deepEqual((await usageOf(fixture)).models.length, 2, 'a deleted version holds its objects until it is removed')
})

test('the usage of a project without objects is nothing, and one that does not exist is told so', async (t) => {
  const fixture = automated(t)
  await fixture.extension.project('empty').models.create({ name: 'A' })
  const { objects, models, roots } = await usageOf(fixture, 'empty')
  assert.deepEqual([objects, models, roots], [0, [], []])
  const { status, json } = await fixture.ask('GET', 'nobody/usage')
  assert.deepEqual(
    [status, json.code, json.message],
    [404, 'not_found', 'there is no project "nobody": the service holds neither objects nor models of it'],
  )
  await uploadObjects(fixture.service, 'bare', [{ id: 'a' }])
  assert.equal((await usageOf(fixture, 'bare')).objects, 1)
  await fixture.service.project('bare').remove()
  assert.equal((await fixture.ask('GET', 'bare/usage')).status, 404)
})

test('a pin keeps an object without a version until it is removed or expires', async (t) => {
  let nowMs = Date.parse('2026-11-22T12:00:00.000Z')
  const fixture = automated(t, { service: { clock: { now: () => nowMs } } })
  await uploadObjects(fixture.service, 'p', [sized('root', ['leaf'], 300), sized('leaf', [], 100)])
  const { pins, usage } = createClient({
    url: 'http://in.process',
    token: undefined,
    fetch: (url, init) => fixture.service.fetch(new Request(url, init)),
  }).project('p')
  assert.equal((await usage()).unreferencedObjects, 2)
  const pin = await pins.add({ rootObjectId: 'root', name: 'Permit', reason: 'Submitted.' })
  const endsAt = new Date(nowMs + DAY_MS).toISOString()
  nowMs += 1
  const second = await pins.add({ rootObjectId: 'leaf', endsAt })
  assert.deepEqual(await pins.list(), [pin, second])
  const held = await usage()
  assert.equal(held.unreferencedObjects, 0)
  assert.deepEqual(
    held.roots.map(({ kind, id, objects, ownObjects }) => [kind, id, objects, ownObjects]),
    [
      ['pin', pin.id, 2, 1],
      ['pin', second.id, 1, 0],
    ],
  )
  nowMs += DAY_MS
  assert.deepEqual(await pins.list(), [pin])
  await pins.remove(pin.id)
  assert.equal((await usage()).unreferencedObjects, 2)
  await assert.rejects(pins.remove(pin.id), { code: 'not_found' })
  await assert.rejects(pins.add({ rootObjectId: 'nobody' }), { code: 'objects_missing' })
  await assert.rejects(pins.add({ rootObjectId: 'root', endsAt }), {
    code: 'invalid_request',
    message: /in the future/,
  })
  await pins.add({ rootObjectId: 'root' })
  await fixture.service.project('p').remove()
  await uploadObjects(fixture.service, 'p', [{ id: 'root' }])
  assert.deepEqual(await pins.list(), [], 'pins go with their project')
})

test('a pin with a lifetime ends that long after its creation, by the clock of the server', async (t) => {
  let nowMs = Date.parse('2026-11-22T12:00:00.000Z')
  const { service, ask } = automated(t, { service: { clock: { now: () => nowMs++ } } })
  await uploadObjects(service, 'p', [{ id: 'root' }])
  const add = (wanted: object): ReturnType<Fixture['ask']> => ask('POST', 'p/pins', { rootObjectId: 'root', ...wanted })
  const { status, json } = await add({ lifetimeMs: 90 * DAY_MS })
  assert.deepEqual(
    [status, Date.parse(json.endsAt as string) - Date.parse(json.createdAt as string)],
    [201, 90 * DAY_MS],
  )
  assert.ok(!('lifetimeMs' in json))
  const refused = async (wanted: object): Promise<unknown> => {
    const answer = await add(wanted)
    assert.deepEqual([answer.status, answer.json.code], [400, 'invalid_request'])
    return answer.json.message
  }
  const endOf = async (wanted: object): Promise<number> => Date.parse((await add(wanted)).json.endsAt)
  const late = '2099-01-01T00:00:00.000Z'
  assert.ok((await endOf({ lifetimeMs: DAY_MS, endsAt: late })) < nowMs + DAY_MS, 'the earlier end counts')
  assert.equal(await endOf({ lifetimeMs: 1_000 * 366 * DAY_MS, endsAt: late }), Date.parse(late))
  for (const lifetimeMs of [0, 1.5, 1e15]) assert.match(String(await refused({ lifetimeMs })), /lifetimeMs/)
})
