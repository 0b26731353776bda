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
  const second = await versions.create(modelId, {
    rootObjectId: (await versions.get(modelId, versionId)).rootObjectId,
    message: 'second',
  })
  await assert.rejects(models.prune(modelId), { code: 'conflict' })
  await versions.change(modelId, versionId, { kept: false })
  const retention = { keepLastCount: 1 }
  const wouldGo = await models.prune(modelId, { dryRun: true, retention })
  assert.deepEqual([wouldGo.dryRun, wouldGo.versions.map(({ id }) => id)], [true, [versionId]])
  assert.deepEqual(
    (await models.prune(modelId, { retention })).versions.map(({ id }) => id),
    [versionId],
  )
  assert.deepEqual(
    (await versions.list(modelId)).items.map(({ id }) => id),
    [second.id],
  )
  await models.delete(modelId)
  assert.deepEqual((await models.list()).items, [])
  assert.equal((await models.restore(modelId)).deletedAt, null)
  await assert.rejects(models.delete('0'.repeat(32)), { code: 'not_found' })
  assert.deepEqual(new Set(methods), new Set(['PATCH', 'DELETE', 'GET', 'POST']))
})
