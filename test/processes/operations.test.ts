import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandLogger } from '../../src/cli/common/log.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'

interface Line {
  readonly url: string
  readonly metricsUrl: string
}

test('a server reports its health without authentication and its metrics on a separate port, and logs requests as JSON', async (context) => {
  const folder = newDataFolder(context)
  const server = await startServer(context, [
    '--data',
    folder,
    '--json',
    '--metrics',
    '0',
    '--log-level',
    'info',
    '--log-format',
    'json',
  ])
  const { url, metricsUrl } = JSON.parse(server.line) as Line
  for (const path of ['/healthz', '/healthz/ready', '/healthz/live']) {
    const health = await fetch(`${url}${path}`)
    assert.deepEqual([health.status, await health.json()], [200, { status: 'ok' }], path)
  }
  assert.equal((await fetch(`${url}/objects/p/a`, { headers: { 'x-request-id': 'asked' } })).status, 401)
  assert.match(metricsUrl, /^http:\/\/127\.0\.0\.1:[1-9][0-9]*\/metrics$/)
  const metrics = await (await fetch(metricsUrl)).text()
  assert.match(
    metrics,
    /^stowage_requests_total\{method="GET",route="\/objects\/:projectId\/:objectId",status="401"\} 1$/m,
  )
  assert.match(metrics, /^nodejs_eventloop_lag_p99_seconds /m)
  assert.equal((await fetch(`${url}/metrics`)).status, 404)
  assert.equal((await fetch(metricsUrl.replace('/metrics', '/objects/p/a'))).status, 404)
  const { code, stderr } = await server.stop()
  assert.equal(code, 0)
  const lines = stderr
    .trim()
    .split('\n')
    .map(
      (line) => JSON.parse(line) as { level: string; message: string; requestId: string; status: number; time: string },
    )
  const [{ level, message, requestId, status }] = lines
  assert.deepEqual([level, message, requestId, status], ['info', 'request', 'asked', 401])
  const taken = await startServer(context, ['--data', folder, '--json', '--metrics', '0'])
  const { port } = new URL((JSON.parse(taken.line) as Line).metricsUrl)
  const refused = await stowage([
    'serve',
    '--storage',
    'memory',
    '--data',
    newDataFolder(context),
    '--port',
    '0',
    '--metrics',
    port,
  ])
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /cannot listen on 127\.0\.0\.1 port \d+, which is already in use/)
  await taken.stop()
})

test('log lines match their level, and client text cannot look like another line', (t) => {
  const written: string[] = []
  t.mock.method(process.stderr, 'write', (text: string) => written.push(text) > 0)
  const logger = commandLogger('warn', 'text')
  logger.info?.({ requestId: 'a' }, 'request')
  logger.warn?.({ path: 'a\nstowage: forged=1' }, 'looks odd')
  logger.error({ err: new Error('why\nnot'), code: 'internal', requestId: 'r1' }, 'it failed')
  logger.error({ code: 'closing' }, 'the service is closing')
  commandLogger('silent', 'json').error({}, 'unseen')
  commandLogger('debug', 'json').debug?.({ text: 'a\nb' }, 'line')
  assert.deepEqual(written.slice(0, 2), [
    'stowage: looks odd path="a\\nstowage: forged=1"\n',
    'stowage: request r1 failed with internal: it failed: why not\n',
  ])
  assert.deepEqual(
    written.slice(2).map((line) => line.replace(/"time":"[^"]*",/, '')),
    ['{"level":"debug","message":"line","text":"a\\nb"}\n'],
  )
})
