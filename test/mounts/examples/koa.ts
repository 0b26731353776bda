import { createServer, type Server } from 'node:http'
import Koa from 'koa'
import { claimAuthorize, continueOnExpect, createObjectService, type ObjectService, type Principal } from 'stowage'
import { filesystemBackend } from 'stowage/filesystem'
import { koaMount } from 'stowage/koa'
import { account } from './accounts.ts'

/** Koa 3 or 2, with the host's own sign-in. */
export const service: ObjectService<Koa.Context> = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: { authenticate: ({ host }) => host.state.account as Principal | undefined, authorize: claimAuthorize },
})

const app = new Koa()
app.use((context, next) => {
  context.state.account = account(context.get('authorization'))
  return next()
})
app.use(koaMount(service, { prefix: '/models' }))
app.use((context) => void (context.body = { hello: 'from the host' }))

const handle = app.callback()
export const server: Server = createServer((req, res) => void handle(req, res))
continueOnExpect(server, service)
server.listen(Number(process.env.PORT ?? 3000))
