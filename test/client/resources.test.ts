import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../src/client/index.ts'
import { automated, withVersion } from '../automation-server/support.ts'

test('the client changes, deletes and restores models and versions', async (t) => {
  const fixture = automated(t)
  const { modelId, versionId } = await withVersion(fixture)
  const methods: string[] = []
  const { models, versions } = createClient({
    url: 'http://in.process',
    token: undefined,
    fetch: (url, init) => {
      methods.push(init.method ?? 'GET')
      return fixture.service.fetch(new Request(url, init))
    },
  }).project('p')
  assert.equal((await models.change(modelId, { name: 'Town hall' })).name, 'Town hall')
  assert.equal((await versions.change(modelId, versionId, { kept: true })).kept, true)
  assert.equal(typeof (await versions.delete(modelId, versionId)).deletedAt, 'string')
  assert.deepEqual((await versions.list(modelId)).items, [])
  assert.equal((await versions.list(modelId, { deleted: true })).items.length, 1)
  assert.equal((await versions.restore(modelId, versionId)).deletedAt, null)
  await models.delete(modelId)
  assert.deepEqual((await models.list()).items, [])
  assert.equal((await models.restore(modelId)).deletedAt, null)
  await assert.rejects(models.delete('0'.repeat(32)), { code: 'not_found' })
  assert.deepEqual(new Set(methods), new Set(['PATCH', 'DELETE', 'GET', 'POST']))
})
