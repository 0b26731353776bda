import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ConnectionLimitHits } from '../../src/cli/server/connection-options.ts'
import { operationsListener, withHealth } from '../../src/cli/server/health-and-metrics.ts'
import type { Logger } from '../../src/logger.ts'
import { Readiness } from '../../src/cli/server/readiness.ts'
import { type StorageBackend, StoragePoisonedError } from '../../src/storage/index.ts'
import { jsonUpload, openService } from '../http/served.ts'
import { listenUntilEnd } from '../support/listen.ts'
import { eventually } from '../support/patience.ts'

async function statuses(
  t: TestContext,
  service: ReturnType<typeof openService>,
  backend: StorageBackend = memoryBackend(),
  logger: Logger = { error: () => undefined },
): Promise<(path: string) => Promise<[number, unknown]>> {
  const server = createServer(withHealth(new Readiness(service, backend, logger), service.node))
  const { url } = await listenUntilEnd(t, server)
  return async (path) => {
    const answer = await fetch(`${url}${path}`)
    return [answer.status, await answer.json()]
  }
}

test('a service is ready between opening and closing, and alive throughout', async (t) => {
  const service = openService()
  const ask = await statuses(t, service)
  assert.deepEqual(
    [await ask('/healthz'), await ask('/healthz/live')],
    [
      [503, { status: 'unavailable' }],
      [200, { status: 'ok' }],
    ],
  )
  await service.ready()
  assert.deepEqual(await ask('/healthz?verbose'), [200, { status: 'ok' }])
  await service.close()
  assert.deepEqual(
    [await ask('/healthz/ready'), await ask('/healthz/live')],
    [
      [503, { status: 'unavailable' }],
      [200, { status: 'ok' }],
    ],
  )
})

test('a service whose storage lost a write never becomes ready again', async (t) => {
  const backend = memoryBackend()
  backend.records.commit = () =>
    Promise.reject(new StoragePoisonedError(new Error('the disk at a secret place failed')))
  const service = openService({ backend })
  t.after(() => service.close())
  const ask = await statuses(t, service, backend)
  await service.ready()
  assert.equal((await service.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))).status, 503)
  assert.deepEqual(await ask('/healthz'), [503, { status: 'unavailable' }])
})

test('a service is not ready while one half of its storage does not answer, and is again when it does', async (t) => {
  const backend = memoryBackend()
  const service = openService({ backend })
  t.after(() => service.close())
  await service.ready()
  const told: string[] = []
  const logger = { error: () => undefined, warn: (_fields: object, message: string) => told.push(message) }
  const ask = await statuses(t, service, backend, logger)
  const { getMany } = backend.records
  const { read } = backend.blobs
  const status = async (path = '/healthz'): Promise<number> => (await ask(path))[0]
  const becomes = async (expected: number): Promise<void> =>
    eventually(async () => (await status()) === expected, `the server answers ${expected}`)
  let asked = 0
  const sinceMs = performance.now()
  backend.records.getMany = () => {
    asked++
    return Promise.reject(new Error('the database at a secret place is away'))
  }
  await becomes(503)
  for (let count = 0; count < 50; count++) assert.equal(await status(), 503)
  assert.ok(asked <= 2 + (performance.now() - sinceMs) / 1_000, `${asked} reads for 50 questions`)
  assert.equal(await status('/healthz/live'), 200)
  backend.records.getMany = getMany
  await becomes(200)
  let held = 0
  let release: (error: Error) => void = () => undefined
  backend.blobs.read = () => {
    held++
    return new Promise((_resolve, reject) => (release = reject))
  }
  await becomes(503)
  for (let count = 0; count < 50; count++) assert.equal(await status('/healthz/ready'), 503)
  assert.equal(held, 1, 'a store that hangs is asked once')
  backend.blobs.read = read
  release(new Error('the connection broke'))
  await becomes(200)
  assert.deepEqual(told, [
    'the records cannot be used, so this server is not ready',
    'the records can be used again',
    'the blobs cannot be used, so this server is not ready',
    'the blobs can be used again',
  ])
})

test('the metrics of the command count connections refused at the limits', async (t) => {
  const service = openService()
  t.after(() => service.close())
  const hits: ConnectionLimitHits = new Map([['connectionsMax', 2]])
  const server = createServer(operationsListener(service, { isReady: async () => true }, hits))
  const { url } = await listenUntilEnd(t, server)
  const counted = /^stowage_connection_limit_hits_total\{limit="connectionsMax"\} (\d+)$/m
  assert.equal(counted.exec(await (await fetch(`${url}/metrics`)).text())?.[1], '2')
  hits.set('connectionsMax', 5)
  assert.equal(counted.exec(await (await fetch(`${url}/metrics`)).text())?.[1], '5')
})
