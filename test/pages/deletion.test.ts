import assert from 'node:assert/strict'
import { test } from 'node:test'
import { paged, signedIn, textOf, withVersion } from './support.ts'

test('a version and a model are deleted after a confirmation, and restored', async (t) => {
  const parts = paged(t)
  const { modelId, versionId } = await withVersion(parts)
  const visitor = await signedIn(parts.service)
  const path = `/web/projects/p/models/${modelId}`
  const before = (await visitor.get(path)).html
  assert.match(before, /<details class="confirm"><summary>Delete …<span class="hidden">: /)
  assert.ok(before.includes(`action="${path}/versions/${versionId}/delete"`))
  const deleted = await visitor.post(`${path}/versions/${versionId}/delete`)
  assert.deepEqual([deleted.status, deleted.headers.get('location')], [303, `${path}?deleted=true`])
  assert.match(textOf((await visitor.get(path)).html), /There are no versions to show\. Show deleted versions/)
  const shown = (await visitor.get(`${path}?deleted=true`)).html
  assert.match(textOf(shown), /Deleted .* Restore/)
  await visitor.post(`${path}/versions/${versionId}/restore`)
  assert.equal((await parts.extension.project('p').versions.get(modelId, versionId)).deletedAt, null)
  await visitor.post(`${path}/delete`)
  assert.match(textOf((await visitor.get(path)).html), /This model was deleted .* Restore this model/)
  assert.doesNotMatch(textOf((await visitor.get('/web/projects/p')).html), /House/)
  await visitor.post(`${path}/restore`)
  assert.match(textOf((await visitor.get('/web/projects/p')).html), /House/)
})

test('the page of a project lists deleted models when it is asked to, and restores them', async (t) => {
  const parts = paged(t)
  const { modelId } = await withVersion(parts)
  const { models } = parts.extension.project('p')
  await models.create({ name: 'Garden' })
  await models.delete(modelId)
  const visitor = await signedIn(parts.service)
  const live = (await visitor.get('/web/projects/p')).html
  assert.doesNotMatch(textOf(live), /House/)
  assert.match(live, /<a href="\/web\/projects\/p\?deleted=true">Show deleted models<\/a>/)
  const path = `/web/projects/p/models/${modelId}`
  const { html } = await visitor.get('/web/projects/p?deleted=true')
  assert.match(textOf(html), /House 1 version Latest: .* Deleted .* UTC \. Restore : House /)
  assert.match(textOf(html), /Garden 0 versions/)
  assert.equal(html.split('/restore"').length, 2, 'only deleted models can be restored')
  assert.ok(html.includes(`<form method="post" action="${path}/restore">`))
  assert.match(html, /<a href="\/web\/projects\/p">Hide deleted models<\/a>/)
  const reader = await signedIn(parts.service, { p: 'read' })
  assert.doesNotMatch((await reader.get('/web/projects/p?deleted=true')).html, /\/restore"/)
  const restored = await visitor.post(`${path}/restore`)
  assert.deepEqual([restored.status, restored.headers.get('location')], [303, path])
  assert.equal((await models.get(modelId)).deletedAt, null)
  assert.match(textOf((await visitor.get('/web/projects/p')).html), /House/)
})

test('the parts of a long list of models keep what is shown', async (t) => {
  // Ids sort by their time.
  let nowMs = Date.now()
  const { extension, service } = paged(t, { service: { clock: { now: () => nowMs++ } } })
  const { models } = extension.project('p')
  for (let i = 0; i < 51; i++) {
    const { id } = await models.create({ name: `Model ${i}` })
    if (i < 50) await models.delete(id)
  }
  const visitor = await signedIn(service)
  const first = (await visitor.get('/web/projects/p')).html
  assert.match(textOf(first), /There are no models to show\. Next models Show deleted models/)
  const [, next] = /rel="next" href="([^"]+)"/.exec(first) ?? []
  assert.match(textOf((await visitor.get(next.replaceAll('&amp;', '&'))).html), /Model 50/)
  const all = (await visitor.get('/web/projects/p?deleted=true')).html
  const [, nextOfAll] = /rel="next" href="([^"]+)"/.exec(all) ?? []
  assert.match(nextOfAll, /\?models=[^&]+&amp;deleted=true$/)
})

test('a reader sees no forms to delete', async (t) => {
  const parts = paged(t)
  const { modelId, versionId } = await withVersion(parts)
  const visitor = await signedIn(parts.service, { p: 'read' })
  const path = `/web/projects/p/models/${modelId}`
  assert.doesNotMatch((await visitor.get(path)).html, /\/delete"/)
  assert.equal((await visitor.post(`${path}/versions/${versionId}/delete`)).status, 403)
})
