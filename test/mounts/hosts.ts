import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import express4 from 'express4'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import Koa2 from 'koa2'
import { continueOnExpect, type ObjectService, type StowageError } from '../../src/index.ts'
import { expressMount } from '../../src/mounts/express.ts'
import { fastifyMount } from '../../src/mounts/fastify.ts'
import { koaMount } from '../../src/mounts/koa.ts'
import { listenUntilEnd } from '../support/listen.ts'

/** What every host answers to paths that are not Stowage's. */
export const HOST_ANSWER = 'the host'

/** Node looks for connections that send their headers slowly every 30 s; tests do not wait so long. */
const CHECKED_OFTEN = { connectionsCheckingInterval: 1_000 }

/** One way to have Stowage in a server. */
export interface Host {
  readonly name: string
  /** Fetch-style hosts have no `next`: Stowage answers paths that are nobody's, and errors are rejections. */
  readonly style: 'node' | 'fetch'
  /** A server with the service below the prefix, an error handler, and an answer of its own to everything else. */
  readonly open: (service: ObjectService, prefix: string) => Promise<Server>
}

/** What the hosts' error handlers answer, for services with `errors: 'next'`. */
export function errorText(error: unknown): string {
  return `host: ${(error as StowageError).code}`
}

function plainServer(service: ObjectService, prefix: string): Promise<Server> {
  const listener = (req: IncomingMessage, res: ServerResponse): void => {
    const next = (error?: unknown): void => {
      res.statusCode = error === undefined ? 404 : (error as StowageError).statusCode
      res.end(error === undefined ? HOST_ANSWER : errorText(error))
    }
    if (prefix === '') service.node(req, res, next)
    else void service.serve({ req, res, next, mountPoint: prefix })
  }
  return Promise.resolve(createServer(CHECKED_OFTEN, listener))
}

function expressServer(create: typeof express | typeof express4): Host['open'] {
  return async (service, prefix) => {
    const app = create() as ReturnType<typeof express>
    app.use(prefix === '' ? '/' : prefix, expressMount(service))
    app.use((_req, res) => void res.status(404).send(HOST_ANSWER))
    app.use(
      (error: StowageError, _req: express.Request, res: express.Response, _next: express.NextFunction) =>
        void res.status(error.statusCode).send(errorText(error)),
    )
    return createServer(CHECKED_OFTEN, app)
  }
}

function koaServer(create: typeof Koa | typeof Koa2): Host['open'] {
  return async (service, prefix) => {
    const app = new create() as Koa
    // Koa tells of every client that goes away.
    app.silent = true
    app.use(async (ctx, next) => {
      try {
        await next()
      } catch (error) {
        ctx.status = (error as StowageError).statusCode
        ctx.body = errorText(error)
      }
    })
    app.use(koaMount(service, { prefix }))
    app.use((ctx) => {
      ctx.status = 404
      ctx.body = HOST_ANSWER
    })
    const handle = app.callback()
    return createServer(CHECKED_OFTEN, (req, res) => void handle(req, res))
  }
}

async function fastifyServer(service: ObjectService, prefix: string): Promise<Server> {
  const fastify = Fastify({ http: CHECKED_OFTEN })
  fastify.setErrorHandler((error: StowageError, _request, reply) => reply.code(error.statusCode).send(errorText(error)))
  fastify.setNotFoundHandler((_request, reply) => reply.code(404).send(HOST_ANSWER))
  await fastify.register(fastifyMount, { service, prefix })
  await fastify.ready()
  return fastify.server
}

async function honoServer(service: ObjectService, prefix: string): Promise<Server> {
  const hono = new Hono()
  hono.mount(prefix === '' ? '/' : prefix, (request) => service.fetch(request))
  hono.onError((error, context) => context.text(errorText(error), (error as StowageError).statusCode as 400))
  return createAdaptorServer({ fetch: hono.fetch, serverOptions: CHECKED_OFTEN }) as Server
}

export const HOSTS: readonly Host[] = [
  { name: 'http', style: 'node', open: plainServer },
  { name: 'express 5', style: 'node', open: expressServer(express) },
  { name: 'express 4', style: 'node', open: expressServer(express4) },
  { name: 'koa 3', style: 'node', open: koaServer(Koa) },
  { name: 'koa 2', style: 'node', open: koaServer(Koa2) },
  { name: 'fastify 5', style: 'node', open: fastifyServer },
  { name: 'hono 4', style: 'fetch', open: honoServer },
]

/** Listens on a free port of this machine until the test ends. */
export async function listen(
  t: TestContext,
  server: Server,
  service: Parameters<typeof continueOnExpect>[1],
): Promise<number> {
  continueOnExpect(server, service)
  return (await listenUntilEnd(t, server)).port
}
