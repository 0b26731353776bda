import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test, type TestContext } from 'node:test'
import pino from 'pino'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { EVENT_CHANNELS, type Logger, type ServiceEvent, StowageError } from '../../src/index.ts'
import { eventually } from '../support/patience.ts'
import { bothCores, idList, jsonUpload, openService, served, type ServedOptions } from '../http/served.ts'

const SECRET = 'secret-text-of-an-object'
const MODEL = [
  { id: 'root', to: { referencedId: 'leaf' }, gone: { referencedId: 'nowhere' } },
  { id: 'leaf', data: SECRET },
]

/** A service over HTTP and all that it told, by type. */
async function told(
  t: TestContext,
  options: ServedOptions = {},
): Promise<{
  url: string
  of: <T extends ServiceEvent['type']>(type: T) => Extract<ServiceEvent, { type: T }>[]
  all: ServiceEvent[]
}> {
  const all: ServiceEvent[] = []
  const { url } = await served(t, { name: 'one', onEvent: (event) => all.push(event), ...options })
  return {
    url,
    all,
    of: <T extends ServiceEvent['type']>(type: T) =>
      all.filter((event): event is Extract<ServiceEvent, { type: T }> => event.type === type),
  }
}

/** An answer may reach its client a moment before the server notes that it is over. */
function until(isThere: () => boolean): Promise<void> {
  return eventually(isThere, 'it is told')
}

test('upload and download events have counts, bytes and the request, and no text of an object', async (t) => {
  const { url, of, all } = await told(t)
  const body = JSON.stringify(MODEL)
  await fetch(`${url}/objects/p`, {
    ...jsonUpload(MODEL),
    headers: { 'content-type': 'application/json', 'x-request-id': 'up-1' },
  })
  const bytes = (
    await (
      await fetch(`${url}/objects/p/root`, {
        headers: { accept: 'text/plain', 'accept-encoding': 'identity', 'x-request-id': 'down-1' },
      })
    ).arrayBuffer()
  ).byteLength
  await until(() => of('request').length === 2)
  const [{ durationMs: uploadMs, ...upload }] = of('upload')
  assert.deepEqual(upload, {
    type: 'upload',
    service: 'one',
    requestId: 'up-1',
    projectId: 'p',
    objects: 2,
    created: 2,
    differing: 0,
    bytes: body.length,
  })
  const [{ durationMs: downloadMs, isPlanned, ...download }] = of('download')
  assert.deepEqual(download, {
    type: 'download',
    service: 'one',
    requestId: 'down-1',
    projectId: 'p',
    objects: 2,
    missing: 1,
    isComplete: true,
    bytes,
  })
  assert.ok(uploadMs > 0 && downloadMs > 0 && typeof isPlanned === 'boolean')
  const requests = of('request').map(({ method, route, status, bytesReceived, isComplete }) => [
    method,
    route,
    status,
    bytesReceived,
    isComplete,
  ])
  assert.deepEqual(requests, [
    ['POST', '/objects/:projectId', 200, body.length, true],
    ['GET', '/objects/:projectId/:objectId', 200, 0, true],
  ])
  assert.ok(all.every((event) => Object.isFrozen(event) && !JSON.stringify(event).includes(SECRET)))
})

test('both cores report exceeded limits, errors and a different text for a held id', async (t) => {
  const events: ServiceEvent[] = []
  for (const [core, ask] of await bothCores(t, () => ({
    limits: { nestingMax: 3 },
    onEvent: (event) => events.push(event),
  }))) {
    events.length = 0
    await ask('/objects/p', jsonUpload([{ id: 'a', v: 1 }, { id: 'b' }]))
    await ask('/objects/p', jsonUpload([{ id: 'a', v: 2 }, { id: 'b' }]))
    assert.equal((await ask('/objects/p', jsonUpload([{ id: 'c', a: [[[]]] }]))).status, 400)
    assert.equal((await ask('/objects/p/none')).status, 404)
    assert.equal((await ask('/nothing/here')).status, 404)
    await until(() => events.filter(({ type }) => type === 'request').length === 5)
    const seen = events
      .filter(({ type }) => type === 'differing' || type === 'limit' || type === 'error')
      .map((event) => {
        if (event.type === 'differing') return [event.type, event.projectId, event.differing, event.ids]
        if (event.type === 'limit') return [event.type, event.limit, event.status]
        return event.type === 'error' ? [event.type, event.code, event.isRetryable] : []
      })
    assert.deepEqual(
      seen,
      [
        ['differing', 'p', 1, ['a']],
        ['error', 'nesting_too_deep', false],
        ['limit', 'nestingMax', 400],
        ['error', 'not_found', false],
        ['error', 'route_not_found', false],
      ],
      core,
    )
    const last = events.findLast((event) => event.type === 'request')
    assert.deepEqual([last?.route, last?.status, last?.code], [undefined, 404, 'route_not_found'], core)
  }
})

test('calls in process cause upload and download events without a request', async (t) => {
  const events: ServiceEvent[] = []
  const service = openService({ onEvent: (event) => events.push(event) })
  t.after(() => service.close())
  const body = Buffer.from(JSON.stringify(MODEL))
  await service.project('p').upload(
    (async function* () {
      yield body
    })(),
    'application/json',
  )
  for await (const _ of service.project('p').graph('root'));
  assert.deepEqual(
    events.map((event) => [event.type, event.requestId, event.projectId, 'bytes' in event && event.bytes > 50]),
    [
      ['upload', undefined, 'p', true],
      ['download', undefined, 'p', true],
    ],
  )
})

test('a download that its client leaves is reported as incomplete, not as an error', async (t) => {
  const { url, of } = await told(t)
  const objects = Array.from({ length: 3_000 }, (_, n) => ({ id: `o${n}`, data: 'x'.repeat(5_000) }))
  await fetch(`${url}/objects/p`, jsonUpload(objects))
  const leaving = new AbortController()
  const list = {
    ...idList(objects.map(({ id }) => id)),
    headers: { accept: 'text/plain', 'accept-encoding': 'identity', 'content-type': 'application/json' },
  }
  const { body } = await fetch(`${url}/api/getobjects/p`, { ...list, signal: leaving.signal })
  await body?.getReader().read()
  leaving.abort()
  await until(() => of('download').length === 1)
  assert.deepEqual(
    [of('download')[0].isComplete, of('request').at(-1)?.isComplete, of('error').map(({ code }) => code)],
    [false, false, []],
  )
})

test('diagnostics channels carry events of all services by name, and a listener of one hears only that one', async (t) => {
  const published: ServiceEvent[] = []
  const listener = (event: unknown): void => void published.push(event as ServiceEvent)
  subscribe(EVENT_CHANNELS.upload, listener)
  t.after(() => unsubscribe(EVENT_CHANNELS.upload, listener))
  const [one, two] = [openService({ name: 'one' }), openService({ name: 'two' })]
  const heard: string[] = []
  const leave = one.subscribe(({ service, type }) => heard.push(`${service} ${type}`))
  for (const service of [one, two])
    await service.fetch(new Request('http://x/objects/p', jsonUpload([{ id: service.name }])))
  leave()
  await one.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'later' }])))
  await Promise.all([one.close(), two.close()])
  assert.deepEqual(
    published.map(({ service }) => service),
    ['one', 'two', 'one'],
  )
  assert.deepEqual(heard, ['one upload', 'one request'])
})

test('a listener that throws, now or later, fails no request and is logged', async (t) => {
  const logged: string[] = []
  const logger: Logger = { error: (_fields, message) => logged.push(message) }
  for (const onEvent of [
    (): void => {
      throw new Error('no')
    },
    (): Promise<void> => Promise.reject(new Error('later')),
  ]) {
    const { url } = await served(t, { logger, onEvent })
    assert.equal((await fetch(`${url}/objects/p`, jsonUpload([{ id: 'a' }]))).status, 200)
  }
  await until(() => logged.length === 4)
  assert.match(logged[0], /^a listener of upload events threw$/)
})

test('detected damage is reported as a finding', async (t) => {
  const findings: ServiceEvent[] = []
  const backend = memoryBackend()
  const read = backend.blobs.read.bind(backend.blobs)
  let isDamaged = false
  backend.blobs.read = async (name, start, end, options) => {
    const bytes = await read(name, start, end, options)
    return isDamaged ? bytes.map((byte) => byte ^ 1) : bytes
  }
  const service = openService({ backend, onEvent: (event) => void (event.type === 'finding' && findings.push(event)) })
  t.after(() => service.close())
  const objects = Array.from({ length: 200 }, (_, n) => ({ id: `o${n}`, data: randomBytes(900).toString('base64') }))
  await service.fetch(new Request('http://x/objects/p', jsonUpload(objects)))
  isDamaged = true
  const { status } = await service.fetch(new Request('http://x/objects/p/o7/single'))
  assert.equal(status, 500)
  assert.deepEqual(
    findings.map(({ type, projectId }) => [type, projectId]),
    [['finding', 'p']],
  )
})

test('pino and console are valid loggers, and levels are as documented', async (t) => {
  const lines: { level: number; msg: string; code?: string; route?: string }[] = []
  const logger = pino(
    { level: 'debug' },
    { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) },
  )
  const broken = {
    has: () => Promise.reject(new Error('broken')),
    put: () => Promise.reject(new StowageError('overloaded', 'too much')),
    get: (): never => {
      throw new Error('broken')
    },
  }
  const service = openService({ store: broken, logger, requestLog: 'info' })
  t.after(() => service.close())
  await service.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))
  await service.fetch(new Request('http://x/objects/p/a/single'))
  await service.fetch(new Request('http://x/nothing'))
  assert.deepEqual(
    lines.map(({ level, msg, code }) => [level, msg === 'request' ? msg : '', code]),
    [
      [40, '', 'overloaded'],
      [30, 'request', 'overloaded'],
      [50, '', 'internal'],
      [30, 'request', 'internal'],
      [30, 'request', 'route_not_found'],
    ],
  )
  const spied = t.mock.method(console, 'error', () => undefined)
  const second = openService({ store: broken, logger: console })
  await second.fetch(new Request('http://x/objects/p/a/single'))
  await second.close()
  assert.equal(spied.mock.callCount(), 1)
})

test('the status of a service follows its life cycle', async () => {
  const service = openService()
  assert.equal(service.status().state, 'new')
  await service.ready()
  const { state, requestsInFlight, uploadsInFlight, requestMemory, answerMemory } = service.status()
  assert.deepEqual(
    [state, requestsInFlight, uploadsInFlight, requestMemory?.heldBytes, answerMemory?.heldBytes],
    ['ready', 0, 0, 0, 0],
  )
  const closing = service.close()
  assert.equal(service.status().state, 'closing')
  await closing
  assert.equal(service.status().state, 'closed')
  const failing = openService({
    backend: Object.assign(memoryBackend(), { ready: () => Promise.reject(new Error('no')) }),
  })
  await assert.rejects(failing.ready())
  assert.equal(failing.status().state, 'failed')
  await failing.close()
})
