import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { claimAuthorize, createObjectService, type ObjectService, type Principal } from 'stowage'
import { expressMount } from 'stowage/express'
import { filesystemBackend } from 'stowage/filesystem'
import { account } from './accounts.ts'

/** Express with a sign-in by cookie, and a page without a bundler that downloads a model with `stowage/client`. */
export const service: ObjectService<express.Request> = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: { authenticate: ({ host }) => signedIn(host), authorize: claimAuthorize },
})

const sessions = new Map<string, Principal>()
const signedIn = (req: express.Request): Principal | undefined =>
  sessions.get(/\bsession=([\w-]+)/.exec(req.get('cookie') ?? '')?.[1] ?? '')

const app = express()
app.use('/models', expressMount(service))

const modules = dirname(dirname(fileURLToPath(import.meta.resolve('stowage/client'))))
for (const module of ['client', 'blocks', 'delta', 'async', 'errors.js'])
  app.use(`/stowage/${module}`, express.static(join(modules, module)))

app.get('/', (_req, res) => res.sendFile('viewer.html', { root: import.meta.dirname }))
app.post('/sign-in', express.json(), (req, res) => {
  const principal = account(`Bearer ${String((req.body as { password?: unknown }).password)}`)
  if (principal !== undefined) {
    const session = randomUUID()
    sessions.set(session, principal)
    res.cookie('session', session, { httpOnly: true, sameSite: 'strict' })
  }
  res.status(principal === undefined ? 401 : 204).end()
})

export const server: Server = createServer(app)
server.listen(Number(process.env.PORT ?? 3000))
