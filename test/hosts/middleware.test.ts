import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { test, type TestContext } from 'node:test'
import fastifyCors from '@fastify/cors'
import { createAdaptorServer } from '@hono/node-server'
import koaCors from '@koa/cors'
import cors from 'cors'
import express from 'express'
import Fastify, { type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import { cors as honoCors } from 'hono/cors'
import Koa from 'koa'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  type Access,
  type AccessRequest,
  claimAuthorize,
  createObjectService,
  type ObjectService,
  type Principal,
} from '../../src/index.ts'
import { expressMount } from '../../src/mounts/express.ts'
import { fastifyMount } from '../../src/mounts/fastify.ts'
import { koaMount } from '../../src/mounts/koa.ts'
import { ask, type Sent } from '../mounts/ask.ts'
import { listen } from '../mounts/hosts.ts'
import { eventually } from '../support/patience.ts'

const ORIGIN = 'https://viewer.example'
const USERS: Readonly<Record<string, Principal>> = {
  ada: { subject: 'ada', projects: { p: 'write' } },
  bob: { subject: 'bob', projects: { q: 'read' } },
}

/** What a host's own sign-in does: here a header is enough. */
function signedIn(name: unknown): Principal | undefined {
  return typeof name === 'string' ? USERS[name] : undefined
}

/** A service whose access asks the host who it is, and writes down the paths that it is told. */
function hostedService<H>(
  t: TestContext,
  userOf: (host: H) => Principal | undefined,
  paths: string[],
): ObjectService<H> {
  const access: Access<H> = {
    authenticate: ({ host, path }: AccessRequest<H>) => {
      paths.push(path)
      return userOf(host)
    },
    authorize: claimAuthorize,
  }
  const service = createObjectService<H>({ backend: memoryBackend(), access })
  t.after(() => service.close({ graceMs: 0 }))
  return service
}

interface Told {
  /** Paths that access was told of. */
  readonly paths: string[]
  /** Lines that the host's log got when an answer was out: method, URL, status. */
  readonly lines: string[]
}

type Open = (t: TestContext, told: Told) => Promise<{ readonly server: Server; readonly service: ObjectService<never> }>

type SignedInRequest = express.Request & { user?: Principal | undefined }

const openExpress: Open = async (t, { paths, lines }) => {
  const service = hostedService<SignedInRequest>(t, (req) => req.user, paths)
  const app = express()
  app.use((req, res, next) => {
    res.on('finish', () => lines.push(`${req.method} ${req.originalUrl} ${res.statusCode}`))
    next()
  })
  app.use(cors({ origin: ORIGIN }))
  app.use((req: SignedInRequest, _res, next) => {
    req.user = signedIn(req.get('x-user'))
    next()
  })
  app.use('/models', expressMount(service))
  return { server: createServer(app), service }
}

const openKoa: Open = async (t, { paths, lines }) => {
  const service = hostedService<Koa.Context>(t, (context) => context.state.user as Principal | undefined, paths)
  const app = new Koa()
  app.use(async (context, next) => {
    await next()
    lines.push(`${context.method} ${context.originalUrl} ${context.status}`)
  })
  app.use(koaCors({ origin: ORIGIN }))
  app.use((context, next) => {
    context.state.user = signedIn(context.get('x-user'))
    return next()
  })
  app.use(koaMount(service, { prefix: 'models/' }))
  const handle = app.callback()
  return { server: createServer((req, res) => void handle(req, res)), service }
}

const openFastify: Open = async (t, { paths, lines }) => {
  const users = new WeakMap<FastifyRequest, Principal | undefined>()
  const service = hostedService<FastifyRequest>(t, (request) => users.get(request), paths)
  const fastify = Fastify()
  await fastify.register(fastifyCors, { origin: [ORIGIN] })
  fastify.addHook(
    'onResponse',
    async (request, reply) => void lines.push(`${request.method} ${request.originalUrl} ${reply.statusCode}`),
  )
  fastify.addHook('preHandler', async (request) => void users.set(request, signedIn(request.headers['x-user'])))
  await fastify.register(fastifyMount, { service, prefix: '/models' })
  await fastify.ready()
  return { server: fastify.server, service }
}

type HonoContext = Context<{ Variables: { user: Principal | undefined } }>

const openHono: Open = async (t, { paths, lines }) => {
  const service = hostedService<HonoContext>(t, (context) => context.get('user'), paths)
  const hono = new Hono<{ Variables: { user: Principal | undefined } }>()
  hono.use(async (context, next) => {
    await next()
    lines.push(`${context.req.method} ${new URL(context.req.url).pathname} ${context.res.status}`)
  })
  hono.use(honoCors({ origin: ORIGIN }))
  hono.use(async (context, next) => {
    context.set('user', signedIn(context.req.header('x-user')))
    await next()
  })
  hono.mount('/models', (request: Request, context: HonoContext) => service.fetch(request, context), {
    optionHandler: (context) => context as HonoContext,
  })
  return { server: createAdaptorServer({ fetch: hono.fetch }) as Server, service }
}

const HOSTED: readonly (readonly [string, Open])[] = [
  ['express', openExpress],
  ['koa', openKoa],
  ['fastify', openFastify],
  ['hono', openHono],
]

async function opened(
  t: TestContext,
  open: Open,
): Promise<Told & { readonly tell: (sent: Sent) => ReturnType<typeof ask> }> {
  const told: Told = { paths: [], lines: [] }
  const { server, service } = await open(t, told)
  const port = await listen(t, server, service)
  await service.project('p').upload(new Blob(['[{"id":"a/b"}]']).stream(), 'application/json')
  return { ...told, tell: (sent) => ask(port, sent, '/models') }
}

const PATH = '/objects/p/a%2Fb'

for (const [name, open] of HOSTED) {
  void test(`${name}: the user of the host is the caller of Stowage`, async (t) => {
    const { tell, paths, lines } = await opened(t, open)
    const status = async (headers: Readonly<Record<string, string>>, path: string = PATH): Promise<number> =>
      (await tell({ path, headers })).status
    assert.deepEqual(
      [await status({ 'x-user': 'ada' }), await status({ 'x-user': 'bob' }), await status({})],
      [200, 403, 401],
    )
    assert.deepEqual(
      [await status({ 'x-user': 'bob' }, '/objects/q/none'), await status({ 'x-user': 'ada' }, '/objects/q/none')],
      [404, 403],
    )
    const upload = {
      method: 'POST',
      path: '/objects/p',
      headers: { 'content-type': 'application/json', 'x-user': 'ada' },
      body: '[{"id":"b"}]',
    }
    assert.equal((await tell(upload)).status, 200)
    // Hosts that strip their mount's path from a Request leave nothing of it.
    const seen = name === 'hono' ? PATH : `/models${PATH}`
    assert.deepEqual(paths.slice(0, 3), [seen, seen, seen])
    await eventually(() => lines.length >= 6, 'the host has logged all of them')
    assert.deepEqual(
      [lines[0], lines[2], lines[5]],
      [`GET /models${PATH} 200`, `GET /models${PATH} 401`, 'POST /models/objects/p 200'],
    )
  })

  void test(`${name}: the host's CORS middleware applies to every response`, async (t) => {
    const { tell } = await opened(t, open)
    const preflight = await tell({
      method: 'OPTIONS',
      path: '/objects/p',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      },
    })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers['access-control-allow-origin'], ORIGIN)
    assert.match(preflight.headers['access-control-allow-methods'], /POST/)
    for (const [user, status] of [
      ['ada', 200],
      ['nobody', 401],
    ] as const) {
      const answer = await tell({ path: PATH, headers: { origin: ORIGIN, 'x-user': user } })
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [status, ORIGIN])
      assert.match(answer.headers.vary, status === 200 ? /Origin.*Accept-Encoding|Accept-Encoding.*Origin/ : /Origin/)
    }
  })
}

void test('a host that refuses a request has the last word', async (t) => {
  const paths: string[] = []
  const service = hostedService<unknown>(t, () => USERS.ada, paths)
  const fastify = Fastify()
  fastify.addHook('preHandler', async (_request, reply) => reply.code(402).send('pay first'))
  await fastify.register(fastifyMount, { service })
  const app = express()
  app.use((_req, res) => void res.status(402).send('pay first'))
  app.use(expressMount(service))
  const koa = new Koa()
  koa.use((context) => void ((context.status = 402), (context.body = 'pay first')))
  koa.use(koaMount(service))
  await fastify.ready()
  const handle = koa.callback()
  for (const server of [fastify.server, createServer(app), createServer((req, res) => void handle(req, res))]) {
    const port = await listen(t, server, service)
    for (const type of ['application/json', 'no media type']) {
      const { status, body } = await ask(port, {
        method: 'POST',
        path: '/objects/p',
        headers: { 'content-type': type },
        body: '[{"id":"a"}]',
      })
      assert.deepEqual([status, body], [402, 'pay first'])
    }
  }
  assert.deepEqual(paths, [])
})

void test('single endpoints serve hosts with their own routing', async (t) => {
  const paths: string[] = []
  const service = hostedService<unknown>(t, () => USERS.ada, paths)
  await service.project('p').upload(new Blob(['[{"id":"a/b"}]']).stream(), 'application/json')
  const { graph, upload } = service.endpoints
  const app = express()
  app.get('/my/:projectId/:objectId', (req, res, next) => graph.node(req, res, req.params, next))
  app.post('/my/:projectId', (req, res, next) => upload.node(req, res, req.params, next))
  const koa = new Koa()
  koa.use(async (context) => {
    context.respond = false
    await graph.serve({ req: context.req, res: context.res, host: context }, { projectId: 'p', objectId: 'a/b' })
  })
  const fastify = Fastify()
  fastify.get<{ Params: { projectId: string; objectId: string } }>('/my/:projectId/:objectId', (request, reply) => {
    reply.hijack()
    graph.node(request.raw, reply.raw, request.params)
  })
  const hono = new Hono().get('/my/:projectId/:objectId', (context) =>
    graph.fetch(context.req.raw, context.req.param(), context),
  )
  await fastify.ready()
  const handle = koa.callback()
  for (const server of [
    createServer(app),
    createServer((req, res) => void handle(req, res)),
    fastify.server,
    createAdaptorServer({ fetch: hono.fetch }) as Server,
  ]) {
    const port = await listen(t, server, service)
    assert.equal((await ask(port, { path: '/my/p/a%2Fb' })).body, '[{"id":"a/b"}]')
  }
})
