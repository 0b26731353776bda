import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { claimAuthorize, continueOnExpect, createObjectService, type ObjectService, type Principal } from 'stowage'
import { filesystemBackend } from 'stowage/filesystem'
import { account } from './accounts.ts'

/** Hono, with the host's own sign-in. The second argument of `fetch` is what access gets as `host`. */
export const service: ObjectService<{ readonly account: Principal | undefined }> = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: { authenticate: ({ host }) => host.account, authorize: claimAuthorize },
  prefix: '/models',
})

const hono = new Hono()
hono.all('/models/*', (context) =>
  service.fetch(context.req.raw, { account: account(context.req.header('authorization')) }),
)
hono.get('/', (context) => context.json({ hello: 'from the host' }))

export const server: Server = serve({ fetch: hono.fetch, port: Number(process.env.PORT ?? 3000) }) as Server
continueOnExpect(server, service)
