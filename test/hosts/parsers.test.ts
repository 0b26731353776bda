import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import compress from '@fastify/compress'
import { createAdaptorServer } from '@hono/node-server'
import { bodyParser } from '@koa/bodyparser'
import express from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import koaBodyParser from 'koa-bodyparser'
import Koa2 from 'koa2'
import type { ObjectService } from '../../src/index.ts'
import { expressMount } from '../../src/mounts/express.ts'
import { fastifyMount } from '../../src/mounts/fastify.ts'
import { koaMount } from '../../src/mounts/koa.ts'
import { filePart, multipartUpload } from '../contract/sides.ts'
import { openService } from '../http/served.ts'
import { ask, type Sent } from '../mounts/ask.ts'
import { listen } from '../mounts/hosts.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'application/x-www-form-urlencoded' }

/** What stands between a parser and Stowage, and what becomes of an upload of plain JSON that the parser has read. */
interface Behind {
  readonly name: string
  readonly open: (service: ObjectService) => Server | Promise<Server>
  /** `stored` where the parser leaves the bytes, `refused` where it leaves parsed values alone. */
  readonly jsonUpload: 'stored' | 'refused'
}

function behindExpress(
  create: typeof express | typeof express4,
  ...parsers: readonly express.RequestHandler[]
): Behind['open'] {
  return (service) => {
    const app = create() as ReturnType<typeof express>
    for (const parser of parsers) app.use(parser)
    app.use('/models', expressMount(service))
    return createServer(app)
  }
}

function behindKoa(app: Koa, parser: Koa.Middleware): Behind['open'] {
  return (service) => {
    app.use(parser)
    app.use(koaMount(service, { prefix: '/models' }))
    const handle = app.callback()
    return createServer((req, res) => void handle(req, res))
  }
}

const behindFastify: Behind['open'] = async (service) => {
  const fastify = Fastify({ bodyLimit: 1_000 })
  await fastify.register(compress)
  fastify.addContentTypeParser('application/gzip', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  await fastify.register(fastifyMount, { service, prefix: '/models' })
  fastify.post('/own', (request) => ({ parsed: request.body }))
  await fastify.ready()
  return fastify.server
}

const keepRawBody = (req: object, _res: unknown, rawBody: Buffer): void => void Object.assign(req, { rawBody })

const BEHIND: readonly Behind[] = [
  {
    name: 'express 5 with json() and urlencoded()',
    open: behindExpress(express, express.json(), express.urlencoded()),
    jsonUpload: 'refused',
  },
  {
    name: 'express 4 with json() and urlencoded()',
    open: behindExpress(express4, express4.json(), express4.urlencoded({ extended: true })),
    jsonUpload: 'refused',
  },
  { name: 'express 5 with raw()', open: behindExpress(express, express.raw({ type: '*/*' })), jsonUpload: 'stored' },
  {
    name: 'express 5 with text()',
    open: behindExpress(express, express.text({ type: ['application/json', FORM_TYPE['content-type']] })),
    jsonUpload: 'stored',
  },
  {
    name: 'express 5 with json() that keeps rawBody',
    open: behindExpress(express, express.json({ verify: keepRawBody })),
    jsonUpload: 'stored',
  },
  {
    name: 'koa 3 with @koa/bodyparser',
    open: behindKoa(new Koa(), bodyParser() as Koa.Middleware),
    jsonUpload: 'stored',
  },
  {
    name: 'koa 2 with koa-bodyparser',
    open: behindKoa(new Koa2() as unknown as Koa, koaBodyParser()),
    jsonUpload: 'stored',
  },
  { name: 'fastify 5 with parsers of its own and @fastify/compress', open: behindFastify, jsonUpload: 'stored' },
]

function post(path: string, headers: Readonly<Record<string, string>>, body: string | Uint8Array): Sent {
  return { method: 'POST', path: `/models${path}`, headers, body }
}

const multipart = multipartUpload([filePart('[{"id":"m","n":1.50}]', 'application/json')])

for (const { name, open, jsonUpload } of BEHIND) {
  void test(`behind ${name}, a parsed body is used, an unparsed one is read, and a lost one is an error`, async (t) => {
    const service = openService()
    t.after(() => service.close({ graceMs: 0 }))
    const port = await listen(t, await open(service), service)
    const text = `[{"id":"a","n":1.50,"big":12345678901234567890}${', {"id":"b"}'.repeat(200)}]`
    const uploaded = await ask(port, post('/objects/p', JSON_TYPE, text))
    assert.deepEqual(
      [uploaded.status, /"code":"(\w+)"/.exec(uploaded.body)?.[1]],
      jsonUpload === 'stored' ? [200, undefined] : [500, 'body_consumed'],
      uploaded.body,
    )
    if (jsonUpload === 'refused') assert.match(uploaded.body, /mount Stowage before the parser/)
    assert.equal(
      (await ask(port, post('/objects/p', { 'content-type': 'application/gzip' }, gzipSync(text)))).status,
      200,
    )
    assert.equal(
      (
        await ask(
          port,
          post('/objects/p', { 'content-type': 'multipart/form-data; boundary=a-boundary-of-tests' }, multipart.body),
        )
      ).status,
      200,
    )
    assert.equal(
      (await ask(port, { path: '/models/objects/p/a/single' })).body,
      '{"id":"a","n":1.50,"big":12345678901234567890}',
    )
    const coded = await ask(
      port,
      post('/objects/p', { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync('[{"id":"c"}]')),
    )
    assert.equal(coded.status, jsonUpload === 'stored' ? 200 : 500, coded.body)
    assert.equal(
      (await ask(port, post('/api/diff/p', JSON_TYPE, '{"objects":"[\\"a\\",\\"z\\"]"}'))).body,
      '{"a":true,"z":false}',
    )
    assert.equal(
      (await ask(port, post('/api/diff/p', FORM_TYPE, `objects=${encodeURIComponent('["a","z"]')}`))).body,
      '{"a":true,"z":false}',
    )
    assert.equal(
      (await ask(port, post('/api/v2/projects/p/object-stream', JSON_TYPE, '{"objectIds":["m"]}'))).body,
      'm\t{"id":"m","n":1.50}\n',
    )
    assert.equal((await ask(port, post('/api/getobjects/p', JSON_TYPE, ''))).status, 400)
  })
}

void test('a parsed text with replacement characters is refused', async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const port = await listen(t, await behindExpress(express, express.text({ type: '*/*' }))(service), service)
  const broken = await ask(port, post('/objects/p', JSON_TYPE, Buffer.from('[{"id":"a","text":"\xff"}]', 'latin1')))
  assert.deepEqual([broken.status, (JSON.parse(broken.body) as { code: string }).code], [500, 'body_consumed'])
  assert.equal((await ask(port, { path: '/models/objects/p/a' })).status, 404)
})

void test('a body that was partly read elsewhere is an error that says so', async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const peek: express.RequestHandler = (req, _res, next) => {
    req.once('data', () => {
      req.pause()
      next()
    })
  }
  const port = await listen(t, await behindExpress(express, peek)(service), service)
  const peeked = await ask(port, post('/objects/p', JSON_TYPE, `[{"id":"a","text":"${'x'.repeat(300_000)}"}]`))
  assert.deepEqual([peeked.status, (JSON.parse(peeked.body) as { code: string }).code], [500, 'body_consumed'])
})

void test("Fastify's own routes keep their parsers and limits", async (t) => {
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  const port = await listen(t, await behindFastify(service), service)
  const own = async (headers: Readonly<Record<string, string>>, body: string): Promise<readonly [number, unknown]> => {
    const { status, body: answer } = await ask(port, { method: 'POST', path: '/own', headers, body })
    return [status, status === 200 ? JSON.parse(answer) : undefined]
  }
  assert.deepEqual(await own(JSON_TYPE, '{"a":1}'), [200, { parsed: { a: 1 } }])
  assert.deepEqual(await own(JSON_TYPE, `"${'x'.repeat(1_000)}"`), [413, undefined])
  assert.deepEqual(await own({ 'content-type': 'multipart/form-data' }, ''), [415, undefined])
})

void test('in Hono a body that was read before is an error on every route to Stowage', async (t) => {
  const service = openService({ prefix: '/raw' })
  t.after(() => service.close({ graceMs: 0 }))
  const hono = new Hono()
  hono.use(async (context, next) => {
    await context.req.text()
    await next()
  })
  hono.onError((error, context) => context.text(error.message, 500))
  hono.mount('/models', (request) => service.fetch(request))
  hono.all('/raw/*', (context) => service.fetch(context.req.raw))
  const port = await listen(t, createAdaptorServer({ fetch: hono.fetch }) as Server, service)
  const raw = await ask(port, { method: 'POST', path: '/raw/objects/p', headers: JSON_TYPE, body: '[{"id":"a"}]' })
  assert.deepEqual([raw.status, (JSON.parse(raw.body) as { code: string }).code], [500, 'body_consumed'])
  assert.equal((await ask(port, post('/raw/objects/p', JSON_TYPE, '[{"id":"a"}]'))).status, 500)
})
