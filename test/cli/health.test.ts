import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ConnectionLimitHits } from '../../src/cli/server/connection-options.ts'
import { operationsListener, withHealth } from '../../src/cli/server/health-and-metrics.ts'
import { StoragePoisonedError } from '../../src/storage/index.ts'
import { jsonUpload, openService } from '../http/served.ts'
import { listenUntilEnd } from '../support/listen.ts'

async function statuses(
  t: TestContext,
  service: ReturnType<typeof openService>,
): Promise<(path: string) => Promise<[number, unknown]>> {
  const server = createServer(withHealth(service, service.node))
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
  const ask = await statuses(t, service)
  await service.ready()
  assert.equal((await service.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))).status, 503)
  assert.deepEqual(await ask('/healthz'), [503, { status: 'unavailable' }])
})

test('the metrics of the command count connections refused at the limits', async (t) => {
  const service = openService()
  t.after(() => service.close())
  const hits: ConnectionLimitHits = new Map([['connectionsMax', 2]])
  const server = createServer(operationsListener(service, hits))
  const { url } = await listenUntilEnd(t, server)
  const counted = /^stowage_connection_limit_hits_total\{limit="connectionsMax"\} (\d+)$/m
  assert.equal(counted.exec(await (await fetch(`${url}/metrics`)).text())?.[1], '2')
  hits.set('connectionsMax', 5)
  assert.equal(counted.exec(await (await fetch(`${url}/metrics`)).text())?.[1], '5')
})
