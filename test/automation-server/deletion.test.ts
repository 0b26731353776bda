import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { StorageBackend } from '../../src/index.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { imageOf } from '../store/failures.ts'
import { eventually } from '../support/patience.ts'
import { automated, definition, type Fixture, type FixtureOptions, reporting, withVersion } from './support.ts'

const SUCCEEDED = reporting({ status: 'succeeded', message: 'done' })

interface Kept extends Fixture {
  readonly modelId: string
  readonly versionId: string
  readonly advance: (epochs: number) => Promise<void>
}

/** A model with a version, on a server that sweeps often. The grace is two epochs and what is left of the first. */
async function kept(t: TestContext, options: FixtureOptions = {}): Promise<Kept> {
  const backend = memoryBackend()
  const fixture = automated(t, {
    backend,
    deletionGraceMs: 2 * EPOCH_MS,
    sweepIntervalMs: 5,
    functions: [definition(SUCCEEDED)],
    ...options,
  })
  const ids = await withVersion(fixture)
  const counter = new EpochCounter(asGuarded(backend).records, REAL_ENVIRONMENT)
  const advance = async (epochs: number): Promise<void> => {
    for (let i = 0; i < epochs; i++) await counter.advance()
  }
  return { ...fixture, ...ids, advance }
}

async function recordsOf(backend: StorageBackend, table: string): Promise<number> {
  const { records } = await imageOf(backend)
  return records.filter(({ key }) => Buffer.from(key).toString().split('\0').includes(table)).length
}

test('a deleted version leaves the list, remains available by id, and can be restored', async (t) => {
  const { ask, modelId, versionId, extension } = await kept(t)
  const { versions } = extension.project('p')
  const second = await versions.create(modelId, { rootObjectId: 'leaf', message: 'second' })
  const path = `p/models/${modelId}/versions`
  const deleted = await ask('DELETE', `${path}/${second.id}`)
  assert.deepEqual([deleted.status, typeof deleted.json.deletedAt], [200, 'string'])
  assert.deepEqual((await ask('DELETE', `${path}/${second.id}`)).json, deleted.json, 'twice is the same as once')
  const model = (await ask('GET', `p/models/${modelId}`)).json
  assert.deepEqual([model.versionCount, model.latestVersionId], [1, versionId])
  const listed = async (query: string): Promise<readonly string[]> =>
    ((await ask('GET', `${path}${query}`)).json.items as readonly { readonly id: string }[]).map(({ id }) => id)
  assert.deepEqual(await listed(''), [versionId])
  assert.deepEqual(await listed('?deleted=true'), [second.id, versionId])
  assert.equal((await ask('GET', `${path}?deleted=yes`)).status, 400)
  assert.deepEqual((await ask('GET', `${path}/${second.id}`)).json, deleted.json)
  const restored = await ask('POST', `${path}/${second.id}/restore`)
  assert.deepEqual(restored.json, second)
  assert.deepEqual((await extension.project('p').models.get(modelId)).latestVersionId, second.id)
  assert.deepEqual(await listed(''), [second.id, versionId])
})

test('after several deletions, the newest remaining version is the latest', async (t) => {
  const { modelId, versionId, extension } = await kept(t)
  const { models, versions } = extension.project('p')
  const second = await versions.create(modelId, { rootObjectId: 'root', message: '' })
  const third = await versions.create(modelId, { rootObjectId: 'root', message: '' })
  await versions.delete(modelId, second.id)
  await versions.delete(modelId, third.id)
  assert.equal((await models.get(modelId)).latestVersionId, versionId)
  await versions.delete(modelId, versionId)
  const { latestVersionId, versionCount } = await models.get(modelId)
  assert.deepEqual([latestVersionId, versionCount], [null, 0])
  const fourth = await versions.create(modelId, { rootObjectId: 'root', message: '' })
  assert.ok(fourth.id > third.id, 'a new id sorts after those of deleted versions')
  await versions.restore(modelId, second.id)
  assert.equal((await models.get(modelId)).latestVersionId, fourth.id)
})

test('a deleted model leaves the list and refuses versions, and its automations do not start', async (t) => {
  const { ask, modelId, versionId, extension } = await kept(t)
  const { models, automations, runs, versions } = extension.project('p')
  const wanted = { name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'version' as const }
  const automation = await automations.create(wanted)
  const run = await runs.start(automation.id)
  await extension.idle()
  assert.equal((await ask('DELETE', `p/models/${modelId}`)).status, 200)
  assert.deepEqual((await models.list()).items, [])
  assert.deepEqual((await models.list({ deleted: true })).items.length, 1)
  const refused: readonly (readonly [string, unknown?])[] = [
    [`p/models/${modelId}/versions`, { rootObjectId: 'root', message: '' }],
    ['p/automations', wanted],
    [`p/automations/${automation.id}/runs`],
    [`p/runs/${run.id}/rerun`],
  ]
  for (const [path, body] of refused) {
    const { status, json } = await ask('POST', path, body)
    assert.deepEqual([status, json.code], [409, 'conflict'], path)
    assert.match(json.message, /is deleted; restore it first/)
  }
  assert.equal((await runs.get(run.id)).versionId, versionId, 'its runs still read well')
  assert.equal((await versions.get(modelId, versionId)).deletedAt, null)
  assert.equal((await ask('POST', `p/models/${modelId}/restore`)).json.deletedAt, null)
  await versions.create(modelId, { rootObjectId: 'root', message: '' })
  await eventually(async () => (await runs.list()).items.length === 2, 'a restored model fires again')
})

test('the upkeep removes deleted models and versions for good after the grace period, and not before', async (t) => {
  const { backend, ask, modelId, versionId, extension, advance } = await kept(t)
  const { models, versions, automations } = extension.project('p')
  const other = await models.create({ name: 'Other' })
  const stays = await versions.create(other.id, { rootObjectId: 'root', message: 'stays' })
  const goes = await versions.create(other.id, { rootObjectId: 'leaf', message: 'goes' })
  await automations.create({ name: 'Check', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' })
  await versions.delete(modelId, versionId)
  await models.delete(modelId)
  await versions.delete(other.id, goes.id)
  const late = await models.create({ name: 'Late' })
  await advance(2)
  await models.delete(late.id)
  await models.restore(modelId)
  await models.delete(modelId)
  await advance(1)
  await eventually(async () => (await recordsOf(backend, 'version')) === 1, 'both deleted versions are gone')
  assert.equal((await ask('POST', `p/models/${other.id}/versions/${goes.id}/restore`)).status, 404)
  assert.equal((await ask('GET', `p/models/${modelId}`)).status, 200, 'deleted anew, its grace began anew')
  await advance(2)
  await eventually(async () => (await recordsOf(backend, 'model')) === 1, 'both models are gone')
  assert.equal((await ask('POST', `p/models/${modelId}/restore`)).status, 404)
  await eventually(async () => (await recordsOf(backend, 'deleted')) === 0, 'and so are the marks')
  assert.deepEqual([await recordsOf(backend, 'version'), await recordsOf(backend, 'automation')], [1, 0])
  assert.deepEqual((await versions.list(other.id, { deleted: true })).items, [stays])
})
