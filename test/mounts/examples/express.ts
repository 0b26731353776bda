import { createServer, type Server } from 'node:http'
import express from 'express'
import { claimAuthorize, continueOnExpect, createObjectService, type ObjectService, type Principal } from 'stowage'
import { expressMount } from 'stowage/express'
import { filesystemBackend } from 'stowage/filesystem'
import { account } from './accounts.ts'

/**
 * Express 5 or 4, with the host's own sign-in. The mount stands before the body parser, which is for the host's own
 * routes.
 */
type SignedIn = express.Request & { account?: Principal | undefined }

export const service: ObjectService<SignedIn> = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: { authenticate: ({ host }) => host.account, authorize: claimAuthorize },
})

const app = express()
app.use((req: SignedIn, _res, next) => {
  req.account = account(req.get('authorization'))
  next()
})
app.use('/models', expressMount(service))
app.use(express.json())
app.get('/', (_req, res) => void res.json({ hello: 'from the host' }))

export const server: Server = createServer(app)
continueOnExpect(server, service)
server.listen(Number(process.env.PORT ?? 3000))
