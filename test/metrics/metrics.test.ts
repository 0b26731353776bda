import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { createMetrics } from '../../src/metrics/index.ts'
import { jsonUpload, openService } from '../http/served.ts'
import { eventually } from '../support/patience.ts'

async function valueOf(
  registry: Registry,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const metric = (await registry.getMetricsAsJSON()).find((one) => one.name === name)
  const found = metric?.values.find((value) =>
    Object.entries(labels).every(([label, wanted]) => (value.labels as Record<string, unknown>)[label] === wanted),
  )
  return found?.value
}

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
