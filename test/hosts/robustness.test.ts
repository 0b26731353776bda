import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import Koa from 'koa'
import type { ObjectRecord, ObjectService, StowageError } from '../../src/index.ts'
import { expressMount } from '../../src/mounts/express.ts'
import { koaMount } from '../../src/mounts/koa.ts'
import { errorOf, idList, jsonUpload, openService, rawExchange, type ServedOptions } from '../http/served.ts'
import { WatchedStore } from '../http/watched-store.ts'
import { ask } from '../mounts/ask.ts'
import { errorText, type Host, HOSTS, listen } from '../mounts/hosts.ts'
import { closesByItself, eventually } from '../support/patience.ts'

const PREFIX = '/models'
const LIMITS = { requestBytesMax: 1_000_000, objectBytesMax: 600_000 }
const OBJECT_BYTES = 500_000
const LARGE = Array.from({ length: 24 }, (_, n) => ({ id: `o${n}`, text: 'x'.repeat(OBJECT_BYTES) }))

interface Open {
  readonly host: Host
  readonly port: number
  readonly url: string
  readonly service: ObjectService
}

async function opened(t: TestContext, host: Host, options: ServedOptions): Promise<Open> {
  const service = openService(options)
  t.after(() => service.close({ graceMs: 0 }))
  const port = await listen(t, await host.open(service, PREFIX), service)
  return { host, port, url: `http://127.0.0.1:${port}${PREFIX}`, service }
}

/** A test for each host, with a service of its own. */
function onEachHost(name: string, options: ServedOptions, check: (open: Open) => Promise<void>): void {
  for (const host of HOSTS) void test(`${host.name}: ${name}`, async (t) => check(await opened(t, host, options)))
}

async function sending(port: number, text: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

const UPLOAD_HEAD = `POST ${PREFIX}/objects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`

const LIST = JSON.stringify({ objects: LARGE.map(({ id }) => id) })
const LIST_REQUEST = `POST ${PREFIX}/api/getobjects/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${LIST.length}\r\n\r\n${LIST}`

/** Holds `LARGE`: more than the system buffers on both ends of a connection. */
const full = new WatchedStore()
const record = ({ id, text }: { readonly id: string; readonly text: string }): ObjectRecord => ({
  id,
  json: Buffer.from(JSON.stringify({ id, text })),
  references: [],
  claims: [],
})
await full.put('p', Readable.from([LARGE.map(record)]))

/** An upload that waits for `100 Continue` before it sends its body. */
function expecting(
  port: number,
  length: number,
  body: string,
): Promise<{ readonly continued: boolean; readonly status: number | undefined }> {
  return new Promise((resolve, reject) => {
    let continued = false
    const headers = { 'Content-Type': 'application/json', 'Content-Length': length, Expect: '100-continue' }
    const req = request({ port, host: '127.0.0.1', agent: false, method: 'POST', path: `${PREFIX}/objects/p`, headers })
    req.on('continue', () => {
      continued = true
      req.end(body)
    })
    req.on('response', (res) => res.resume().on('end', () => resolve({ continued, status: res.statusCode })))
    req.on('error', reject)
    req.flushHeaders()
  })
}

for (const errors of ['answer', 'next'] as const) {
  onEachHost(
    `a 413 arrives while the client sends, whoever answers it (errors: ${errors})`,
    { limits: LIMITS, errors },
    async ({ host, url, port, service }) => {
      const headers = { 'Content-Type': 'application/json' }
      const expected = errors === 'next' ? errorText({ code: 'request_too_large' }) : '"code":"request_too_large"'
      for (let round = 0; round < 3; round++) {
        const refused = await fetch(`${url}/objects/p`, { method: 'POST', headers, body: Buffer.alloc(1_900_000, ' ') })
        assert.equal(refused.status, 413)
        assert.ok((await refused.text()).includes(expected))
      }
      const piece = `${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`
      const answer = await rawExchange(port, [
        UPLOAD_HEAD.replace('Host: x', 'Host: x\r\nConnection: close'),
        ...Array.from({ length: 28 }, () => piece),
        '0\r\n\r\n',
      ])
      assert.match(answer, /^HTTP\/1\.1 413 /, host.name)
      assert.ok(answer.includes(expected), answer)
      await closesByItself(service)
    },
  )
}

onEachHost(
  "errors: 'next' hands errors to the host's error handler, and nothing else",
  { errors: 'next' },
  async ({ url }) => {
    for (const [path, init, status, code] of [
      ['/objects/p/none', {}, 404, 'not_found'],
      ['/objects/p/%ff', {}, 400, 'invalid_request'],
      ['/objects/p', { method: 'DELETE' }, 405, 'method_not_allowed'],
      ['/objects/p', { ...jsonUpload([]), body: '[1]' }, 400, 'invalid_object'],
      ['/objects/p', { ...jsonUpload([]), headers: { 'content-type': 'text/html' } }, 415, 'unsupported_media_type'],
    ] as const) {
      const answer = await fetch(`${url}${path}`, init)
      assert.deepEqual([answer.status, await answer.text()], [status, errorText({ code })])
    }
    assert.equal((await fetch(`${url}/objects/p`, jsonUpload([{ id: 'a' }]))).status, 200)
  },
)

onEachHost(
  'Expect: 100-continue: what is refused is not sent, what is read is asked for',
  { limits: LIMITS },
  async ({ port, host }) => {
    // Hono's own mount() makes a new Request and begins to read for it.
    assert.deepEqual(await expecting(port, 3_000_000, ' '.repeat(3_000_000)), {
      continued: host.style === 'fetch',
      status: 413,
    })
    assert.deepEqual(await expecting(port, 12, '[{"id":"a"}]'), { continued: true, status: 200 })
  },
)

void test('a Hono route, unlike mount(), does not read the body', async (t) => {
  const service = openService({ limits: LIMITS, prefix: PREFIX })
  const hono = new Hono().all(`${PREFIX}/*`, (context) => service.fetch(context.req.raw, context))
  const port = await listen(t, createAdaptorServer({ fetch: hono.fetch }) as Server, service)
  assert.deepEqual(await expecting(port, 3_000_000, ' '.repeat(3_000_000)), { continued: false, status: 413 })
  assert.deepEqual(await expecting(port, 12, '[{"id":"a"}]'), { continued: true, status: 200 })
  await closesByItself(service)
})

onEachHost(
  'a client that goes away, up or down, frees everything',
  { store: full, limits: LIMITS },
  async ({ port, service }) => {
    const uploading = await sending(port, `${UPLOAD_HEAD}11\r\n[{"id":"a"},{"id"\r\n`)
    await eventually(() => full.puts === 1, 'the upload begins')
    uploading.destroy()
    await eventually(() => full.puts === 0, 'the upload ends')
    const reading = await sending(port, LIST_REQUEST)
    await once(reading, 'data')
    assert.equal(full.gets, 1, 'the answer is under way')
    reading.destroy()
    await eventually(() => full.gets === 0, 'sending ends')
    await closesByItself(service)
    assert.equal((await ask(port, { path: `${PREFIX}/objects/p/a` })).status, 503)
  },
)

void test('slow bodies and slow readers are cut off on all hosts at once', async (t) => {
  await Promise.all(
    HOSTS.map(async (host) => slowClients(await opened(t, host, { store: full, stallTimeoutMs: 150, limits: LIMITS }))),
  )
})

async function slowClients({ port, url, service }: Open): Promise<void> {
  assert.match(
    await rawExchange(port, [`${UPLOAD_HEAD}5\r\n[{"id\r\n`]),
    /^HTTP\/1\.1 400 [^]*"code":"request_aborted"\}/,
  )
  const readers = await Promise.all(Array.from({ length: 3 }, () => sending(port, LIST_REQUEST)))
  const closed = readers.map((reader) => once(reader.pause(), 'close'))
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => (await fetch(`${url}/objects/p/o1/single`, { method: 'HEAD' })).status),
  )
  assert.deepEqual(new Set(statuses), new Set([200]))
  await eventually(() => full.gets === 0, 'slow readers are given up')
  await closesByItself(service)
  for (const reader of readers) reader.resume()
  await Promise.all(closed)
}

class FailingStore extends WatchedStore {
  failure: Error | undefined

  override has(projectId: string, ids: readonly string[]): Promise<readonly boolean[]> {
    return this.failure === undefined ? super.has(projectId, ids) : Promise.reject(this.failure)
  }
}

void test('a storage failure has its status on every mount, leaks no secret, and passes', async (t) => {
  const store = new FailingStore()
  const told: string[] = []
  const note = (...what: unknown[]): void => void told.push(JSON.stringify(what))
  const service = openService({
    store,
    logger: {
      error: (fields, message) => note(message, Object.keys(fields)),
      warn: (fields, message) => note(message, Object.keys(fields)),
    },
    onError: (error: StowageError, context) => note(error, context.requestId),
  })
  t.after(() => service.close({ graceMs: 0 }))
  const headers = {
    authorization: 'Bearer the-secret-token',
    'content-type': 'application/json',
    'x-request-id': 'x"<script>',
  }
  for (const host of HOSTS) {
    const port = await listen(t, await host.open(service, PREFIX), service)
    const diff = async (): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}${PREFIX}/api/diff/p?token=the-secret-token`, { ...idList(['a']), headers })
    for (const [code, status] of [
      ['ENOSPC', 507],
      ['EMFILE', 503],
      ['EHUNTER2', 500],
    ] as const) {
      store.failure = Object.assign(new Error(`hunter2 at /srv/${code}`), { code })
      const answer = await diff()
      assert.equal(answer.headers.get('retry-after') !== null, status === 503)
      const error = await errorOf(answer)
      assert.equal(error.status, status, host.name)
      told.push(JSON.stringify(error), JSON.stringify([...answer.headers]))
    }
    store.failure = undefined
    assert.equal(await (await diff()).text(), '{"a":false}', host.name)
  }
  assert.equal(told.length, HOSTS.length * 3 * 4)
  for (const text of told) assert.doesNotMatch(text, /hunter2|secret-token|<script>|\/srv/i)
})

void test('a client that left before the mount ran blocks nothing', async (t) => {
  const service = openService()
  let passed = 0
  const koa = new Koa()
  koa.use(async (context, next) => {
    await once(context.res, 'close')
    await next()
    passed++
  })
  koa.use(koaMount(service))
  const app = express()
  app.use((_req, res, next) => void res.once('close', next))
  app.use(expressMount(service))
  const handle = koa.callback()
  for (const server of [createServer((req, res) => void handle(req, res)), createServer(app)]) {
    const port = await listen(t, server, service)
    const asked = once(server, 'request')
    const socket = await sending(port, `${UPLOAD_HEAD.replace(PREFIX, '')}5\r\n[{"id\r\n`)
    await asked
    socket.destroy()
  }
  await eventually(() => passed === 1, 'the middleware before the mount goes on')
  await closesByItself(service)
})
