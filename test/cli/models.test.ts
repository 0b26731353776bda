import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { automation } from '../../src/automation-server/index.ts'
import { RemoteModels } from '../../src/cli/client/models.ts'
import { Connection } from '../../src/client/http/connection.ts'
import { RetryPolicy } from '../../src/client/http/retry.ts'
import type { Fetch } from '../../src/client/index.ts'
import { openService } from '../http/served.ts'

/**
 * Models of a service in process. Of each kind of `POST`, the answer to the first one is lost after it was acted upon,
 * if `isLossy`.
 */
async function modelsOf(
  t: TestContext,
  isLossy: boolean,
): Promise<{ readonly models: RemoteModels; readonly lost: () => number }> {
  const service = openService({ extensions: [automation()] })
  t.after(() => service.close({ graceMs: 0 }))
  const seen = new Set<string>()
  const fetch: Fetch = async (url, init) => {
    const response = await service.fetch(new Request(url, init))
    const kind = url.split('/').at(-1) ?? ''
    if (!isLossy || init.method !== 'POST' || seen.has(kind)) return response
    seen.add(kind)
    throw new TypeError('terminated')
  }
  const connection = new Connection({ url: 'http://in.process', token: undefined, fetch })
  const retry = new RetryPolicy({ delayMs: 1 })
  const { signal } = new AbortController()
  const headers = { 'Content-Type': 'application/json' }
  const upload = { method: 'POST', headers, body: '[{"id":"root"}]' }
  assert.equal((await service.fetch(new Request('http://in.process/objects/demo', upload))).status, 200)
  return { models: new RemoteModels({ connection, retry, projectId: 'demo', signal }), lost: () => seen.size }
}

async function all<T>(pages: AsyncIterable<readonly T[]>): Promise<T[]> {
  const items: T[] = []
  for await (const page of pages) items.push(...page)
  return items
}

test('a retry does not repeat a creation whose response was lost', async (t) => {
  const { models, lost } = await modelsOf(t, true)
  const model = await models.create('Town hall')
  const version = await models.createVersion(model, 'root', 'first')
  assert.equal(lost(), 2)
  assert.deepEqual(
    (await all(models.list())).map(({ id, versionCount }) => [id, versionCount]),
    [[model.id, 1]],
  )
  assert.deepEqual(await all(models.versions(model)), [version])
  const again = await models.createVersion(await models.get('Town hall'), 'root', 'first')
  assert.notEqual(again.id, version.id, 'the same once more is a version of its own')
})

test('a model is found by name or id, and an ambiguous name finds none', async (t) => {
  const { models } = await modelsOf(t, false)
  const first = await models.create('Town hall')
  assert.equal((await models.get('Town hall')).id, first.id)
  const second = await models.create('Town hall')
  assert.notEqual(second.id, first.id)
  await assert.rejects(models.find('Town hall'), {
    code: 'invalid_request',
    message: /2 models are called "Town hall"/,
  })
  assert.equal((await models.find(second.id))?.name, 'Town hall')
  assert.equal(await models.find('Church'), undefined)
  await assert.rejects(models.get('Church'), { code: 'not_found', message: /there is no model "Church"/ })
})

test('a deleted model or version is found only among deleted ones, and can be restored', async (t) => {
  const { models } = await modelsOf(t, false)
  const model = await models.create('Town hall')
  const version = await models.createVersion(model, 'root', 'first')
  assert.equal(typeof (await models.deleteVersion(model, version.id)).deletedAt, 'string')
  assert.deepEqual(await all(models.versions(model)), [])
  assert.deepEqual(
    (await all(models.versions(model, { deleted: true }))).map(({ id }) => id),
    [version.id],
  )
  assert.deepEqual(await models.restoreVersion(model, version.id), version)
  await models.delete(model)
  await assert.rejects(models.get('Town hall'), { code: 'not_found' })
  await models.restore(await models.get('Town hall', { deleted: true }))
  assert.deepEqual(await all(models.versions(await models.get('Town hall'))), [version])
})
