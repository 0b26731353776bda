import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatBytes } from '../../src/pages/views/parts.tsx'
import { paged, signedIn, textOf, uploadObjects, withVersion } from './support.ts'

test('the storage page shows the storage of a project and its models', async (t) => {
  const parts = paged(t)
  const { modelId } = await withVersion(parts)
  const visitor = await signedIn(parts.service)
  assert.match((await visitor.get('/web/projects/p')).html, /<a href="\/web\/projects\/p\/usage">/)
  const { status, html } = await visitor.get('/web/projects/p/usage')
  assert.equal(status, 200)
  assert.ok(html.includes(`href="/web/projects/p/models/${modelId}"`))
  assert.match(
    textOf(html),
    /2 objects, \d+ bytes of JSON\. 0 objects \(0 bytes\) that no version and no pin leads to\./,
  )
  assert.match(textOf(html), /House 1 version .*2 objects, \d+ bytes; only here: 2 objects, \d+ bytes\./)
})

test('the storage page shows what is on the disk: packs, replaced packs and plans', async (t) => {
  const parts = paged(t)
  await withVersion(parts)
  const project = parts.service.project('p')
  for (const id of ['a', 'b']) await uploadObjects(parts.service, 'p', [{ id }])
  const before = await project.compact({ all: true })
  const visitor = await signedIn(parts.service)
  const shown = textOf((await visitor.get('/web/projects/p/usage')).html)
  const [, packs, replaced, plans] =
    /On disk Packs (\d+) bytes: .* Replaced packs ([\d.]+ \w+): .* Plans (\d+) bytes: /.exec(shown) ??
    assert.fail(shown)
  assert.equal(Number(packs), before.storedBytesAfter)
  assert.equal(replaced, formatBytes(before.retiredBytes))
  assert.equal(Number(plans), 0)
})

test('the storage of a model is shown by version, in parts', async (t) => {
  // Ids sort by their time.
  let nowMs = Date.now()
  const parts = paged(t, { service: { clock: { now: () => nowMs++ } } })
  const { modelId } = await withVersion(parts)
  const { versions } = parts.extension.project('p')
  await uploadObjects(parts.service, 'p', [{ id: 'second', child: { referencedId: 'leaf' } }])
  const { id } = await versions.create(modelId, { rootObjectId: 'second', message: 'second' })
  await versions.delete(modelId, id)
  const visitor = await signedIn(parts.service, { p: 'read' })
  const path = `/web/projects/p/models/${modelId}/usage`
  assert.ok((await visitor.get('/web/projects/p/usage')).html.includes(`href="${path}"`))
  assert.ok((await visitor.get(`/web/projects/p/models/${modelId}`)).html.includes(`href="${path}"`))
  const shown = textOf((await visitor.get(path)).html)
  assert.match(shown, /“ second ”, .* Deleted .* UTC 2 objects, \d+ bytes; only here: 1 object, \d+ bytes\. “ first ”/)
  const later = textOf((await visitor.get(`${path}?before=${id}`)).html)
  assert.match(later, /“ first ”, .* UTC 2 objects, \d+ bytes; only here: 1 object, \d+ bytes\.$/)
  assert.doesNotMatch(later, /second/)
  for (let i = 0; i < 50; i++) await versions.create(modelId, { rootObjectId: 'root', message: `copy ${i}` })
  const [, next] = /rel="next" href="([^"]+)"/.exec((await visitor.get(path)).html) ?? []
  assert.match(textOf((await visitor.get(next)).html), /“ second ”.*“ first ”/)
})
