import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { PlainObjectStore } from '../http/plain-object-store.ts'
import { jsonUpload, openService } from '../http/served.ts'
import { eventually } from '../support/patience.ts'
import { valueOf } from './value-of.ts'

test("metrics count the work of a service in the host's registry until they are removed", async (t) => {
  const registry = new Registry()
  const service = openService({ limits: { nestingMax: 3 } })
  t.after(() => service.close())
  const metrics = createMetrics({ registry, service })
  const ask = async (path: string, init?: RequestInit): Promise<void> =>
    void (await (await service.fetch(new Request(`http://x${path}`, init))).arrayBuffer())
  assert.equal(await valueOf(registry, 'stowage_ready'), 0)
  await ask('/objects/p', jsonUpload([{ id: 'a', v: 1 }, { id: 'b' }]))
  await ask('/objects/p', jsonUpload([{ id: 'a', v: 2 }]))
  await ask('/objects/p', jsonUpload([{ id: 'deep', a: [[[]]] }]))
  await ask('/objects/p/a')
  await ask('/objects/some-project/other', { headers: { 'x-request-id': 'chosen' } })
  await ask('/made/up/by/a/client', { method: 'PATCH' })
  const route = '/objects/:projectId'
  // An answer may reach its reader a moment before the service notes that it is over.
  for (const [expected, name, labels] of [
    [1, 'stowage_ready', {}],
    [2, 'stowage_requests_total', { method: 'POST', route, status: '200' }],
    [1, 'stowage_requests_total', { route: 'none', status: '404' }],
    [2, 'stowage_uploads_total', {}],
    [3, 'stowage_uploaded_objects_total', {}],
    [2, 'stowage_stored_objects_total', {}],
    [1, 'stowage_differing_objects_total', {}],
    [1, 'stowage_downloaded_objects_total', {}],
    [1, 'stowage_limit_hits_total', { limit: 'nestingMax' }],
    [1, 'stowage_errors_total', { code: 'nesting_too_deep' }],
    [0, 'stowage_requests_in_flight', {}],
    [0, 'stowage_uploads_in_flight', {}],
    [0, 'stowage_downloads_in_flight', {}],
    [0, 'stowage_request_memory_bytes', {}],
    [0, 'stowage_answer_memory_bytes', {}],
    [(96 * 1_048_576) / 8, 'stowage_answer_memory_limit_bytes', {}],
  ] as const)
    await eventually(
      async () => (await valueOf(registry, name, labels)) === expected,
      `${name} ${JSON.stringify(labels)} is ${expected}`,
    )
  const text = await registry.metrics()
  assert.match(text, /stowage_request_duration_seconds_count\{route="\/objects\/:projectId"\} 3/)
  assert.doesNotMatch(text, /some-project|made|chosen|"a"/)
  metrics.remove()
  metrics.remove()
  assert.equal(await registry.metrics(), '\n')
  createMetrics({ registry, service }).remove()
})

test('two services on one registry need two prefixes, and a refused service registers nothing', async (t) => {
  const registry = new Registry()
  const [one, two] = [openService(), openService()]
  t.after(() => Promise.all([one.close(), two.close()]))
  createMetrics({ registry, service: one })
  const names = (await registry.getMetricsAsJSON()).map(({ name }) => name)
  assert.throws(() => createMetrics({ registry, service: two }), /already been registered/)
  assert.deepEqual(
    (await registry.getMetricsAsJSON()).map(({ name }) => name),
    names,
  )
  createMetrics({ registry, service: two, prefix: 'other_' })
  await two.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))
  await eventually(async () => (await valueOf(registry, 'other_uploads_total')) === 1, 'the upload is counted')
  assert.equal(await valueOf(registry, 'stowage_uploads_total'), 0)
})

test('gauges show what projects hold, read again after 30 s at most', async (t) => {
  const registry = new Registry()
  let laterMs = 0
  const environment = { ...REAL_ENVIRONMENT, monotonicMs: () => REAL_ENVIRONMENT.monotonicMs() + laterMs }
  const service = openService({ environment })
  t.after(() => service.close())
  createMetrics({ registry, service })
  const gauges = ['stowage_project_objects', 'stowage_project_json_bytes', 'stowage_project_stored_bytes']
  for (const name of ['stowage_projects', 'stowage_uncounted_projects', ...gauges])
    assert.equal(await valueOf(registry, name), undefined, `${name} before the service is open`)
  const [a, b] = [{ id: 'a', v: 1 }, { id: 'b' }]
  const upload = async (projectId: string, objects: readonly unknown[]): Promise<void> =>
    void (await (await service.fetch(new Request(`http://x/objects/${projectId}`, jsonUpload(objects)))).text())
  await upload('one', [a, b])
  await upload('two', [a])
  assert.equal(await valueOf(registry, 'stowage_projects'), 2)
  assert.equal(await valueOf(registry, 'stowage_uncounted_projects'), 0)
  const bytes = (...objects: readonly unknown[]): number => objects.map((one) => JSON.stringify(one)).join('').length
  const amounts = async (project: string): Promise<unknown> =>
    Promise.all(gauges.map((name) => valueOf(registry, name, { project })))
  const { largest } = await service.totals()
  const storedBytes = (id: string): number => largest.find(({ projectId }) => projectId === id)?.storedBytes ?? 0
  assert.ok(storedBytes('two') > 0)
  assert.deepEqual(await amounts('one'), [2, bytes(a, b), storedBytes('one')])
  assert.deepEqual(await amounts('two'), [1, bytes(a), storedBytes('two')])
  assert.deepEqual(await amounts(''), [0, 0, 0], 'all others')
  await upload('two', [b])
  assert.equal(await valueOf(registry, 'stowage_project_objects', { project: 'two' }), 1)
  await service.project('one').remove()
  laterMs = 30_000
  assert.equal(await valueOf(registry, 'stowage_project_objects', { project: 'two' }), 2)
  assert.deepEqual(await amounts('one'), [undefined, undefined, undefined])
  assert.equal(await valueOf(registry, 'stowage_projects'), 1)
})

test('totals that cannot be read take no other metric along', async (t) => {
  const registry = new Registry()
  const service = openService({ store: new PlainObjectStore() })
  t.after(() => service.close())
  createMetrics({ registry, service })
  await service.ready()
  await assert.rejects(service.totals(), { code: 'not_supported' })
  assert.equal(await valueOf(registry, 'stowage_ready'), 1)
  assert.equal(await valueOf(registry, 'stowage_projects'), undefined)
  assert.equal(await valueOf(registry, 'stowage_project_objects'), undefined)
})
