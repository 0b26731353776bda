/// <reference types="node" preserve="true" />

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Mountable } from '../http/service-router.ts'

/** A handler for `app.use()` and `router.use()` of Express 5 and 4. */
export type ExpressHandler<H> = (req: IncomingMessage & H, res: ServerResponse, next: (error?: unknown) => void) => void

/**
 * Mounts a service in Express: `app.use('/models', expressMount(service))`, or without a path. Access receives
 * Express's own request. Paths that are not Stowage's go on to the next handler.
 *
 * @example
 * import express, { type Request } from 'express'
 * import { createObjectService, openAccess } from 'stowage'
 * import { expressMount } from 'stowage/express'
 * import { memoryBackend } from 'stowage/memory'
 *
 * const service = createObjectService<Request>({ backend: memoryBackend(), access: openAccess() })
 * const host = express()
 * host.use('/models', expressMount(service))
 * host.listen(8080)
 */
export function expressMount<H>(service: Mountable<H>): ExpressHandler<H> {
  return (req, res, next) => void service.serve({ req, res, next, host: req })
}
