import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { uploadObjects } from '../automation-server/support.ts'
import { paged, signedIn, textOf, withVersion } from './support.ts'

const USAGE = '/web/projects/p/usage'
const COLLECTION = '/web/projects/p/collection'
const GRACE_EPOCHS = (14 * 86_400_000) / EPOCH_MS

test('a pin is added with a form, shown with what it keeps, and removed', async (t) => {
  const parts = paged(t)
  await withVersion(parts)
  const visitor = await signedIn(parts.service)
  assert.match(textOf((await visitor.get(USAGE)).html), /There is no pin yet\. Add a pin …/)
  const added = await visitor.post('/web/projects/p/pins', {
    rootObjectId: ' root ',
    name: 'Permit',
    reason: 'Submitted.',
    days: '30',
  })
  assert.deepEqual([added.status, added.headers.get('location')], [303, USAGE])
  const { html } = await visitor.get(USAGE)
  assert.match(textOf(html), /Permit Until .* Submitted\. Root object root : 2 objects, /)
  const [, path] = /action="(\/web\/projects\/p\/pins\/[0-9a-f]{32}\/remove)"/.exec(html) ?? assert.fail(html)
  const removed = await visitor.post(path)
  assert.deepEqual([removed.status, removed.headers.get('location')], [303, USAGE])
  assert.match(textOf((await visitor.get(USAGE)).html), /There is no pin yet/)
})

test('an invalid pin is shown again with the reason', async (t) => {
  const parts = paged(t)
  await withVersion(parts)
  const visitor = await signedIn(parts.service)
  const post = async (form: Readonly<Record<string, string>>): Promise<string> => {
    const { status, html } = await visitor.post('/web/projects/p/pins', form)
    assert.equal(status, 422)
    assert.match(html, /<details class="confirm" open/)
    return html
  }
  const unknown = await post({ rootObjectId: 'nobody', name: 'Kept name' })
  assert.match(textOf(unknown), /Error: .*nobody/)
  assert.ok(unknown.includes('value="Kept name"'))
  assert.match(textOf(await post({ rootObjectId: 'root', days: '0' })), /a whole number from 1 to 36,500/)
  assert.match(textOf(await post({ rootObjectId: 'root', name: 'two\nlines' })), /it must be one line/)
  assert.deepEqual(await parts.service.project('p').has(['nobody']), new Set())
})

test('a retention rule is set, tells how much it would delete, and is taken back', async (t) => {
  const parts = paged(t)
  const { modelId } = await withVersion(parts)
  const { versions, models } = parts.extension.project('p')
  await versions.create(modelId, { rootObjectId: 'root', message: 'second' })
  const visitor = await signedIn(parts.service)
  const path = `/web/projects/p/models/${modelId}`
  assert.match(textOf((await visitor.get(path)).html), /Retention Every version is kept\./)
  const set = await visitor.post(`${path}/retention`, { keepLastCount: '1', keepDailyDays: '', keepAllDays: '' })
  assert.deepEqual([set.status, set.headers.get('location')], [303, path])
  assert.deepEqual((await models.get(modelId)).retention, { keepLastCount: 1 })
  const ruled = (await visitor.get(path)).html
  assert.match(textOf(ruled), /The rule keeps the latest version, .* The rule would delete 1 version now\./)
  assert.match(ruled, /name="keepLastCount"[^>]* value="1"/)
  const refused = await visitor.post(`${path}/retention`, { keepLastCount: 'many' })
  assert.equal(refused.status, 422)
  assert.match(textOf(refused.html), /a whole number from 1 to 100,000/)
  assert.deepEqual((await models.get(modelId)).retention, { keepLastCount: 1 })
  await visitor.post(`${path}/retention`, { keepLastCount: '' })
  assert.equal((await models.get(modelId)).retention, null)
})

test('a version is marked as kept, so that no rule deletes it, and no longer', async (t) => {
  const parts = paged(t)
  const { modelId, versionId } = await withVersion(parts)
  const { versions } = parts.extension.project('p')
  const visitor = await signedIn(parts.service)
  const path = `/web/projects/p/models/${modelId}/versions/${versionId}`
  const kept = await visitor.post(`${path}/keep`)
  assert.deepEqual(
    [kept.status, kept.headers.get('location')],
    [303, `/web/projects/p/models/${modelId}#version-${versionId}`],
  )
  assert.equal((await versions.get(modelId, versionId)).kept, true)
  assert.match(
    textOf((await visitor.get(`/web/projects/p/models/${modelId}`)).html),
    /Retention rules do not delete it\. Runs on this version/,
  )
  await visitor.post(`${path}/unkeep`)
  assert.equal((await versions.get(modelId, versionId)).kept, false)
})

test('the page about collection previews, collects and restores', async (t) => {
  const parts = paged(t)
  await withVersion(parts)
  await uploadObjects(parts.service, 'p', [{ id: 'zombie' }, { id: 'other' }])
  const visitor = await signedIn(parts.service)
  assert.ok((await visitor.get(USAGE)).html.includes(`href="${COLLECTION}"`))
  assert.match(textOf((await visitor.get(COLLECTION)).html), /There is nothing to collect\./)
  const counter = new EpochCounter(asGuarded(parts.backend).records, REAL_ENVIRONMENT)
  for (let i = 0; i <= GRACE_EPOCHS; i++) await counter.advance()
  const wanted = textOf((await visitor.get(COLLECTION)).html)
  assert.match(
    wanted,
    /Takes away 2 objects, \d+ bytes of JSON 2 objects, .* They were never part of a version or a pin/,
  )
  const collected = await visitor.post(COLLECTION)
  assert.deepEqual([collected.status, collected.headers.get('location')], [303, COLLECTION])
  assert.deepEqual(await parts.service.project('p').has(['zombie']), new Set())
  assert.match(
    textOf((await visitor.get(COLLECTION)).html),
    /2 objects, .* that earlier collections took away can be restored/,
  )
  await visitor.post(`${COLLECTION}/restore`)
  assert.deepEqual(await parts.service.project('p').has(['zombie']), new Set(['zombie']))
})

test('the page about collection of a project without objects says so', async (t) => {
  const parts = paged(t)
  await parts.extension.project('p').models.create({ name: 'House' })
  const visitor = await signedIn(parts.service)
  const { status, html } = await visitor.get(COLLECTION)
  assert.equal(status, 200)
  assert.match(textOf(html), /This project holds no objects, so there is nothing to collect\./)
})

test('the page about collection frees chosen objects of a project without versions', async (t) => {
  const parts = paged(t, { service: { collection: { undoMs: EPOCH_MS } } })
  await uploadObjects(parts.service, 'p', [{ id: 'chosen' }, { id: 'other' }])
  const visitor = await signedIn(parts.service)
  assert.match(
    textOf((await visitor.get(COLLECTION)).html),
    /neither a version nor a pin, so only objects that somebody/,
  )
  const counter = new EpochCounter(asGuarded(parts.backend).records, REAL_ENVIRONMENT)
  const pass = async (): Promise<void> => {
    for (let i = 0; i < 2; i++) await counter.advance()
  }
  await pass()
  await parts.service.project('p').collectObjects(['chosen'])
  await pass()
  assert.match(textOf((await visitor.get(COLLECTION)).html), /Frees for good 1 object, \d+ bytes of JSON Collect …/)
  await visitor.post(COLLECTION)
  assert.equal(await parts.service.project('p').get('chosen'), undefined)
})

test('the page about collection uses the periods of the service, and names them', async (t) => {
  const collection = { olderThanMs: 12 * 3_600_000, undoMs: 60 * 86_400_000 }
  const parts = paged(t, { service: { collection } })
  await withVersion(parts)
  await uploadObjects(parts.service, 'p', [{ id: 'zombie' }])
  const visitor = await signedIn(parts.service)
  const counter = new EpochCounter(asGuarded(parts.backend).records, REAL_ENVIRONMENT)
  for (let i = 0; i <= collection.olderThanMs / EPOCH_MS; i++) await counter.advance()
  const shown = textOf((await visitor.get(COLLECTION)).html)
  assert.match(shown, /that are older than 12 hours\. They can be restored for 60 days; a later collection frees them/)
  assert.match(shown, /Everything that it takes away can be restored for 60 days\./)
  await visitor.post(COLLECTION)
  for (let i = 0; i <= GRACE_EPOCHS; i++) await counter.advance()
  await visitor.post(COLLECTION)
  await visitor.post(`${COLLECTION}/restore`)
  assert.deepEqual(await parts.service.project('p').has(['zombie']), new Set(['zombie']))
})

test('the page about collection tells freed objects from copies of objects that were uploaded again', async (t) => {
  const parts = paged(t)
  await withVersion(parts)
  await uploadObjects(parts.service, 'p', [{ id: 'zombie' }, { id: 'other' }])
  const visitor = await signedIn(parts.service)
  const counter = new EpochCounter(asGuarded(parts.backend).records, REAL_ENVIRONMENT)
  for (const step of ['condemned', 'old']) {
    for (let i = 0; i <= GRACE_EPOCHS; i++) await counter.advance()
    if (step === 'condemned') await visitor.post(COLLECTION)
  }
  await uploadObjects(parts.service, 'p', [{ id: 'zombie' }])
  const shown = textOf((await visitor.get(COLLECTION)).html)
  assert.match(shown, /Frees for good 1 object, \d+ bytes of JSON Drops replaced copies 1 copy, \d+ bytes of JSON\./)
  assert.match(shown, /1 object cannot be restored afterwards\./)
  assert.match(shown, /Undo 1 object, \d+ bytes of JSON that earlier collections took away can be restored\./)
})

test('a reader sees pins and rules, and may change nothing', async (t) => {
  const parts = paged(t)
  const { modelId, versionId } = await withVersion(parts)
  await parts.extension.project('p').models.change(modelId, { retention: { keepAllDays: 7 } })
  const visitor = await signedIn(parts.service, { p: 'read' })
  const model = (await visitor.get(`/web/projects/p/models/${modelId}`)).html
  assert.match(textOf(model), /The rule keeps the latest version, all versions for 7 days/)
  assert.doesNotMatch(model, /<form method="post" action="\/web\/projects/)
  const usage = (await visitor.get(USAGE)).html
  assert.doesNotMatch(usage, /<form method="post" action="\/web\/projects/)
  assert.equal((await visitor.get(COLLECTION)).status, 403)
  for (const path of [
    'pins',
    'collection',
    `models/${modelId}/retention`,
    `models/${modelId}/versions/${versionId}/keep`,
  ])
    assert.equal((await visitor.post(`/web/projects/p/${path}`)).status, 403, path)
})
