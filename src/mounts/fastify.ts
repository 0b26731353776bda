/// <reference types="node" preserve="true" />

import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Mountable } from '../http/service-router.ts'

/** Options of the plugin, besides Fastify's own `prefix`. */
export interface FastifyMountOptions {
  /** The service to mount. */
  readonly service: Mountable<FastifyRequest>
}

/** The route options that switch @fastify/compress off. It would read the body otherwise. */
const UNCOMPRESSED = { compress: false, decompress: false } as const
const MEDIA_TYPE = /^\s*[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(?:;|$)/

/**
 * Mounts a service in Fastify 5, as a plugin: `fastify.register(fastifyMount, { service, prefix: '/models' })`. Access
 * receives Fastify's request. Hooks that the host added before run as for any other route, except those of bodies and
 * payloads: bodies reach Stowage unread, and responses bypass `onSend`.
 *
 * @example
 * import createFastify, { type FastifyRequest } from 'fastify'
 * import { createObjectService, openAccess } from 'stowage'
 * import { fastifyMount } from 'stowage/fastify'
 * import { memoryBackend } from 'stowage/memory'
 *
 * const service = createObjectService<FastifyRequest>({ backend: memoryBackend(), access: openAccess() })
 * const host = createFastify()
 * await host.register(fastifyMount, { service, prefix: '/models' })
 * await host.listen({ port: 8080 })
 */
export async function fastifyMount(fastify: FastifyInstance, { service }: FastifyMountOptions): Promise<void> {
  const escaped = escapeMalformed(fastify)
  const mountPoint = fastify.prefix.split('/').filter((segment) => segment !== '').length
  const urls = service.pathPrefixes.map(
    (beginning) => `${service.prefix}${beginning}${beginning.endsWith('/') ? '*' : ''}`,
  )
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null))
  for (const url of urls) {
    fastify.route({
      url,
      method: fastify.supportedMethods,
      exposeHeadRoute: false,
      ...UNCOMPRESSED,
      onRequest: tolerateMediaType,
      handler: (request, reply) => {
        const { raw } = request
        const next = (error?: unknown): unknown => (error === undefined ? reply.callNotFound() : reply.send(error))
        void service.serve({
          req: raw,
          res: reply.raw,
          next,
          mountPoint,
          host: request,
          url: escaped.get(raw) ?? raw.url ?? '/',
          onBeforeHeaders: () => takeOver(reply),
        })
      },
    })
  }
}

/** Fastify keeps headers that hooks have set to itself, for an answer of its own. */
function takeOver(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value)
  reply.hijack()
}

/** Fastify refuses an invalid media type before any handler runs. The service checks the header itself. */
function tolerateMediaType(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const type = request.raw.headers['content-type']
  if (type !== undefined && !MEDIA_TYPE.test(type)) request.headers = { 'content-type': 'application/octet-stream' }
  done()
}

/**
 * Fastify's router answers paths that are not percent-encoded UTF-8 before any plugin sees them, in its own shape. So
 * below the mount it receives a path that it can decode. Returns the original targets.
 */
function escapeMalformed(fastify: FastifyInstance): WeakMap<IncomingMessage, string> {
  const targets = new WeakMap<IncomingMessage, string>()
  fastify.server.prependListener('request', (req: IncomingMessage) => {
    const { url } = req
    if (url === undefined || !url.startsWith(fastify.prefix)) return
    const pathEnd = url.search(/[?#]|$/)
    const path = url.slice(0, pathEnd)
    if (isDecodable(path)) return
    targets.set(req, url)
    req.url = path.replaceAll('%', '%25') + url.slice(pathEnd)
  })
  return targets
}

function isDecodable(path: string): boolean {
  if (!path.includes('%')) return true
  try {
    decodeURI(path)
    return true
  } catch {
    return false
  }
}
