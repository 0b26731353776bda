import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { memoryBackend } from '../adapters/memory/index.ts'
import { createObjectService, type ObjectService, openAccess } from '../src/index.ts'
import { HOST_ANSWER, HOSTS } from '../test/mounts/hosts.ts'

/* Started by `mounts.ts`: every host in one process, each on a port of its own, over one service wherever that can be. */

const PREFIX = '/models'

function open(prefix: string): ObjectService {
  return createObjectService({ backend: memoryBackend(), access: openAccess(), prefix })
}

const shared = open('')
const prefixed = open(PREFIX)
const byRoute = new Hono()
  .all(`${PREFIX}/objects/*`, ({ req }) => prefixed.fetch(req.raw))
  .all(`${PREFIX}/api/*`, ({ req }) => prefixed.fetch(req.raw))
byRoute.notFound((context) => context.text(HOST_ANSWER, 404))

const servers: (readonly [string, Server])[] = []
for (const host of HOSTS) servers.push([host.name, await host.open(shared, host.name === 'http' ? '' : PREFIX)])
servers.splice(1, 0, ['http, once more', await HOSTS[0].open(shared, '')])
servers.push(['hono 4, by a route', createAdaptorServer({ fetch: byRoute.fetch }) as Server])

const ports: (readonly [string, number])[] = []
for (const [name, server] of servers) {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ports.push([name, (server.address() as AddressInfo).port])
}
process.once('disconnect', () => process.exit())
process.send?.(ports)
