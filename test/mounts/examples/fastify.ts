import type { Server } from 'node:http'
import Fastify, { type FastifyRequest } from 'fastify'
import { claimAuthorize, continueOnExpect, createObjectService, type ObjectService } from 'stowage'
import { fastifyMount } from 'stowage/fastify'
import { filesystemBackend } from 'stowage/filesystem'
import { account } from './accounts.ts'

/**
 * Fastify 5, with the host's own sign-in. Hooks, error and not-found handlers that Stowage shall use are set before it
 * is registered.
 */
export const service: ObjectService<FastifyRequest> = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: { authenticate: ({ host }) => account(host.headers.authorization), authorize: claimAuthorize },
})

const fastify = Fastify()
await fastify.register(fastifyMount, { service, prefix: '/models' })
fastify.get('/', () => ({ hello: 'from the host' }))
fastify.addHook('onClose', () => service.close())

export const server: Server = fastify.server
continueOnExpect(server, service)
await fastify.listen({ port: Number(process.env.PORT ?? 3000) })
