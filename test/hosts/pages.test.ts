import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { test } from 'node:test'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import koaBodyParser from 'koa-bodyparser'
import type { ObjectService } from '../../src/index.ts'
import { expressMount } from '../../src/mounts/express.ts'
import { fastifyMount } from '../../src/mounts/fastify.ts'
import { koaMount } from '../../src/mounts/koa.ts'
import { listen } from '../mounts/hosts.ts'
import { paged, tokenFor, withVersion } from '../pages/support.ts'

interface Host {
  readonly name: string
  readonly open: (service: ObjectService, isParsed: boolean) => Server | Promise<Server>
}

const HOSTS: readonly Host[] = [
  {
    name: 'Express',
    open: (service, isParsed) => {
      const app = express()
      if (isParsed) app.use(express.urlencoded({ extended: true }))
      return createServer(app.use('/models', expressMount(service)))
    },
  },
  {
    name: 'Koa',
    open: (service, isParsed) => {
      const app = new Koa()
      if (isParsed) app.use(koaBodyParser())
      const handle = app.use(koaMount(service, { prefix: '/models' })).callback()
      return createServer((req, res) => void handle(req, res))
    },
  },
  {
    name: 'Fastify',
    open: async (service, isParsed) => {
      const fastify = Fastify()
      fastify.get('/', () => 'the page of the host')
      if (isParsed)
        fastify.addContentTypeParser(
          'application/x-www-form-urlencoded',
          { parseAs: 'string' },
          (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
        )
      await fastify.register(fastifyMount, { service, prefix: '/models' })
      await fastify.ready()
      return fastify.server
    },
  },
]

for (const { name, open } of HOSTS) {
  for (const isParsed of [false, true]) {
    test(`pages work in ${name}${isParsed ? ', whose parser has read the form' : ''}`, async (t) => {
      const parts = paged(t)
      await withVersion(parts)
      const origin = `http://127.0.0.1:${await listen(t, await open(parts.service, isParsed), parts.service)}`
      const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
        fetch(`${origin}${path}`, {
          redirect: 'manual',
          ...init,
          headers: { accept: 'text/html', ...(init.headers as Record<string, string>) },
        })
      const signIn = await ask('/models/web/projects/p')
      assert.equal(signIn.status, 401)
      const style = /<link rel="stylesheet" href="([^"]+)"/.exec(await signIn.text())?.[1] ?? ''
      assert.match(style, /^\/models\/web\/assets\//)
      assert.equal((await ask(style)).status, 200)
      const signedIn = await ask('/models/web/sign-in', {
        method: 'POST',
        headers: { origin },
        body: new URLSearchParams({ token: await tokenFor({ p: 'read' }), next: '/models/web/projects/p' }),
      })
      assert.deepEqual([signedIn.status, signedIn.headers.get('location')], [303, '/models/web/projects/p'])
      const [set] = signedIn.headers.getSetCookie()
      assert.match(set, /; Path=\/models;/)
      const cookie = set.split(';')[0]
      assert.match(await (await ask('/models/web/projects/p', { headers: { cookie } })).text(), /<bdi>House<\/bdi>/)
      assert.match(
        await (await ask('/models/web/nothing/at/all', { headers: { cookie } })).text(),
        /There is nothing here/,
      )
    })
  }
}
