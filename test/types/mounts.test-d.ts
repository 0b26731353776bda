import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import express from 'express'
import express4 from 'express4'
import Fastify, { type FastifyPluginAsync, type FastifyRequest } from 'fastify'
import { type Context, Hono } from 'hono'
import Koa from 'koa'
import Koa2 from 'koa2'
import { expectAssignable, expectError, expectType } from 'tsd'
import {
  type Access,
  continueOnExpect,
  createObjectService,
  type MountedRequest,
  type ObjectService,
  openAccess,
} from 'stowage'
import { type ExpressHandler, expressMount } from 'stowage/express'
import { fastifyMount, type FastifyMountOptions } from 'stowage/fastify'
import { koaMount, type KoaMiddleware, type KoaMountOptions } from 'stowage/koa'
import { memoryBackend } from 'stowage/memory'

const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
declare const server: Server

// Express 5 and 4, with and without a path, in the application and in a router.
express().use('/models', expressMount(service))
express().use(expressMount(service))
express4().use('/models', expressMount(service))
express4.Router().use(expressMount(service))
express.Router().use('/:tenant/models', expressMount(service))
expectType<ExpressHandler<unknown>>(expressMount(service))
expectError(expressMount({ backend: memoryBackend() }))

// Access is told of what the host has, and the types hold a mount and its host together.
interface Account {
  readonly subject: string
}
declare function hosted<H>(access: Access<H>): ObjectService<H>
const authorize = (): boolean => true
type SignedIn = express.Request & { account?: Account }
const inExpress = hosted<SignedIn>({ authenticate: ({ host }) => host.account, authorize })
express().use(expressMount(inExpress))
const inKoa = hosted<Koa.Context>({ authenticate: ({ host }) => host.state.account as Account, authorize })
new Koa().use(koaMount(inKoa, { prefix: '/models' }))
expectError(express().use(expressMount(inKoa)))
const inFastify = hosted<FastifyRequest>({ authenticate: ({ host }) => ({ subject: host.ip }), authorize })

// Koa 3 and 2.
new Koa().use(koaMount(service, { prefix: '/models' }))
new Koa().use(koaMount(service))
new Koa2().use(koaMount(service, { prefix: '/models' }))
new Koa<{ account: Account }>().use(koaMount(service))
expectType<KoaMiddleware<unknown>>(koaMount(service))
expectAssignable<KoaMountOptions>({})
expectError(koaMount(service, { path: '/models' }))

// Fastify 5, as a plugin, with a logger and over TLS and HTTP/2 too.
Fastify().register(fastifyMount, { service, prefix: '/models' })
Fastify({ logger: true }).register(fastifyMount, { service })
Fastify({ https: {} }).register(fastifyMount, { service })
Fastify({ http2: true }).register(fastifyMount, { service })
Fastify().register(fastifyMount, { service: inFastify })
expectAssignable<FastifyPluginAsync<FastifyMountOptions>>(fastifyMount)
expectError(Fastify().register(fastifyMount, { prefix: '/models' }))
expectError(Fastify().register(fastifyMount, { service: inKoa }))
continueOnExpect(Fastify().server, service)

// Hono and other fetch-style hosts.
new Hono().mount('/models', (request) => service.fetch(request))
const inHono = hosted<Context>({ authenticate: ({ host }) => ({ subject: String(host.get('account')) }), authorize })
new Hono().all('/models/*', (context) => inHono.fetch(context.req.raw, context))
expectError(inHono.fetch(new Request('http://localhost/'), { account: 'ada' }))

// Plain http, and hosts that route by themselves.
createServer(service.node)
const { graph } = service.endpoints
express().get('/my/:projectId/:objectId', (req, res, next) => graph.node(req, res, req.params, next))
expectError(express().get('/my/:objectId', (req, res) => graph.node(req, res, { objectId: req.params.objectId })))
Fastify().get<{ Params: { projectId: string; objectId: string } }>('/my/:projectId/:objectId', (request, reply) => {
  reply.hijack()
  graph.node(request.raw, reply.raw, request.params)
})
new Hono().get('/my/:projectId/:objectId', (context) => graph.fetch(context.req.raw, context.req.param()))

// What a mount of one's own stands on.
declare const req: IncomingMessage
declare const res: ServerResponse
expectType<Promise<void>>(service.serve({ req, res, mountPoint: '/models', host: { any: 'thing' } }))
expectType<Promise<void>>(graph.serve({ req, res }, { projectId: 'p', objectId: 'o' }))
expectAssignable<MountedRequest<{ readonly user: string }>>({
  req,
  res,
  next: () => undefined,
  url: '/',
  mountPoint: 1,
  host: { user: 'ada' },
  body: {},
  onBeforeHeaders: () => undefined,
})
expectError(inKoa.serve({ req, res, host: { user: 'ada' } }))
expectType<string>(service.prefix)
expectType<Server>(server)
