/// <reference types="node" preserve="true" />

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Mountable } from '../http/service-router.ts'

/** The part of the context of Koa 3 and 2 that the mount uses. */
export interface KoaContext {
  /** The request of Node. */
  readonly req: IncomingMessage
  /** The response of Node. */
  readonly res: ServerResponse
  /** With the members that body parsers leave. */
  readonly request: object
  /** Set to `false`, so that Koa does not answer too. */
  respond?: boolean | undefined
}

/** A middleware for `app.use()`. */
export type KoaMiddleware<H> = (ctx: KoaContext & H, next: () => Promise<unknown>) => Promise<void>

/** The part of a path that belongs to the host. */
export interface KoaMountOptions {
  /** The prefix of the paths, such as `/models`. */
  readonly prefix?: string
}

/**
 * Mounts a service in Koa: `app.use(koaMount(service, { prefix: '/models' }))`. Access receives Koa's context.
 * Middleware before it can wait for the response as for any other. Paths that are not Stowage's go on to the next
 * middleware.
 *
 * @example
 * import Koa, { type Context } from 'koa'
 * import { createObjectService, openAccess } from 'stowage'
 * import { koaMount } from 'stowage/koa'
 * import { memoryBackend } from 'stowage/memory'
 *
 * const service = createObjectService<Context>({ backend: memoryBackend(), access: openAccess() })
 * const host = new Koa()
 * host.use(koaMount(service, { prefix: '/models' }))
 * host.listen(8080)
 */
export function koaMount<H>(service: Mountable<H>, options: KoaMountOptions = {}): KoaMiddleware<H> {
  const prefix = (options.prefix ?? '').replace(/^\/+|\/+$/g, '')
  const mountPoint = prefix === '' ? '' : `/${prefix}`
  return async (ctx, next) => {
    const { req, res } = ctx
    const { rawBody, body }: { readonly rawBody?: unknown; readonly body?: unknown } = ctx.request
    let passedOn: { readonly error?: Error } | undefined
    await service.serve({
      req,
      res,
      mountPoint,
      host: ctx,
      body: rawBody ?? body,
      next: (error) => (passedOn = { error: error as Error }),
    })
    if (passedOn === undefined) ctx.respond = false
    else if (passedOn.error === undefined) await next()
    else throw passedOn.error
  }
}
