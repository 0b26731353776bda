import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { availableParallelism } from 'node:os'
import { DeflatePool } from './compression/deflate-pool.ts'
import type { StowageError } from './errors.ts'
import { createGuard, HttpCore } from './http/core.ts'
import { corsPolicy } from './http/cors.ts'
import { serveFetch } from './http/fetch.ts'
import { Flights } from './http/flights.ts'
import { type HostCall, type Next, type NodeCall, serveNode } from './http/node.ts'
import { createOperations } from './http/operations/index.ts'
import { decodeParams, type EndpointName, type Match, matchPath, normalizePrefix, type Params, pathBelow, type Route, ROUTES } from './http/router.ts'
import { splitTarget } from './http/target.ts'
import { type Limits, resolveLimits } from './limits.ts'
import type { GraphStore } from './object/graph-store.ts'
import { type ProjectObjects, projectObjects } from './project-objects.ts'
import { graphStoreOf } from './service-storage.ts'
import type { ErrorContext, ObjectServiceOptions } from './service-options.ts'

export { continueOnExpect } from './http/continue.ts'

/** One endpoint for a host's own router. Its parameters come decoded; they are checked here all the same. */
export interface Endpoint<H = unknown> {
  readonly method: 'GET' | 'POST'
  /** Such as `/objects/:projectId/:objectId`, without the prefix. */
  readonly path: string
  node(req: IncomingMessage, res: ServerResponse, params: Params, next?: Next): void
  /** The same for hosts that Node's `(req, res)` does not tell everything. Resolves when the answer is out, or `next` was called. Never rejects. */
  serve(call: HostCall<H>, params: Params): Promise<void>
  fetch(request: Request, params: Params, host?: H): Promise<Response>
}

export type Endpoints<H> = { readonly [E in EndpointName]: Endpoint<H> }

export interface ObjectService<H = unknown> extends AsyncDisposable {
  /** Opens the storage. Rejects with the cause; requests wait for it, and fail while it fails. */
  ready(): Promise<void>
  /** Serves Node's `(req, res)`. A path that is not Stowage's goes to `next`, where there is one, else it gets 404. Can be passed around by itself. */
  readonly node: (req: IncomingMessage, res: ServerResponse, next?: Next) => void
  /** The same for hosts that Node's `(req, res)` does not tell everything: what the mounts stand on. Resolves when the answer is out, or `next` was called. Never rejects. */
  readonly serve: (call: HostCall<H>) => Promise<void>
  /** Serves fetch-style hosts, and a host's own tests without a port. Can be passed around by itself. */
  readonly fetch: (request: Request, host?: H) => Promise<Response>
  readonly endpoints: Endpoints<H>
  /** What stands before the paths of the endpoints: `''`, or as in `/models`. A mount's own prefix comes before it. */
  readonly prefix: string
  /** Throws `invalid_id`. */
  project(projectId: string): ProjectObjects
  /** Ids of the projects that hold something, in batches. */
  projects(): AsyncIterable<readonly string[]>
  /** Answers 503 to new requests, waits `graceMs` (10,000) for those under way, aborts the rest, and closes the storage it was given. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

const GRACE_MS = 10_000
const STALL_TIMEOUT_MS = 60_000
/** Fastest, and on answers that are not stored compressed as small as higher levels within a few percent. */
const COMPRESSION_LEVEL = 1

/**
 * Everything is created at once and nothing is opened: that happens in `ready()`, or with the first request.
 * Throws `TypeError` and `RangeError` for options that cannot be, and for a backend that another service has already.
 */
export function createObjectService<H = unknown>(options: ObjectServiceOptions<H>): ObjectService<H> {
  return new Service<H>(options)
}

class Service<H> implements ObjectService<H> {
  readonly prefix: string
  readonly node: ObjectService<H>['node']
  readonly serve: ObjectService<H>['serve']
  readonly fetch: ObjectService<H>['fetch']
  readonly endpoints: Endpoints<H>
  readonly #store: GraphStore
  readonly #limits: Limits
  readonly #flights = new Flights()
  readonly #compressor = new DeflatePool({ level: COMPRESSION_LEVEL, concurrency: availableParallelism() })
  readonly #core: HttpCore<H>
  readonly #wire: { readonly stallTimeoutMs: number; readonly requestBytesMax: number }
  #opening: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(options: ObjectServiceOptions<H>) {
    this.prefix = normalizePrefix(options.prefix)
    const newId = options.newId ?? ((): string => randomBytes(16).toString('hex'))
    this.#limits = resolveLimits(options.limits)
    this.#wire = { stallTimeoutMs: options.stallTimeoutMs ?? STALL_TIMEOUT_MS, requestBytesMax: this.#limits.requestBytesMax }
    const cors = options.cors === undefined ? undefined : corsPolicy(options.cors)
    this.#store = graphStoreOf(options, { limits: this.#limits, newId, clock: options.clock, memoryBytesMax: options.memoryBytesMax, logger: options.logger })
    this.#core = new HttpCore<H>({
      operations: createOperations<H>({
        store: this.#store, guard: createGuard(options.access), limits: this.#limits, compressor: this.#compressor, uploadStatus: options.uploadStatus ?? 200,
      }),
      ready: () => this.ready(),
      flights: this.#flights,
      cors,
      errors: options.errors ?? 'answer',
      failed: (error, context) => tell(options, error, context as ErrorContext<H>),
      newRequestId: newId,
    })
    this.node = (req, res, next) => void this.#serve({ req, res, ...(next === undefined ? {} : { next }) })
    this.serve = (call) => this.#serve(call)
    this.fetch = (request, host) => this.#serveFetch(this.#match(splitTarget(request.url).path), request, host)
    this.endpoints = Object.fromEntries(Object.values(ROUTES).map((route) => [route.name, this.#endpoint(route)])) as Endpoints<H>
  }

  ready(): Promise<void> {
    this.#opening ??= this.#store.ready()
    return this.#opening
  }

  project(projectId: string): ProjectObjects {
    return projectObjects({ store: this.#store, ready: () => this.ready(), flights: this.#flights, limits: this.#limits }, projectId)
  }

  async *projects(): AsyncGenerator<readonly string[]> {
    this.#flights.checkOpen()
    await this.ready()
    yield* this.#store.projects()
  }

  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options.graceMs ?? GRACE_MS)
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(graceMs: number): Promise<void> {
    await this.#flights.close(graceMs)
    this.#compressor.close()
    await this.#opening?.catch(() => undefined)
    await this.#store.close()
  }

  #endpoint(route: Route): Endpoint<H> {
    const { method, path } = route
    return {
      method,
      path,
      node: (req, res, params, next) => void this.#serveRoute({ req, res, ...(next === undefined ? {} : { next }), route, params: () => params }),
      serve: (call, params) => this.#serveRoute({ ...call, route, params: () => params }),
      fetch: (request, params, host) => serveFetch(this.#core, this.#wire, { request, host: host as H, route, params: () => params }),
    }
  }

  #match(path: string | undefined): Match | undefined {
    return path === undefined ? undefined : matchPath(path, this.prefix)
  }

  #serve(call: HostCall<H>): Promise<void> {
    const { path } = splitTarget(call.url ?? call.req.url ?? '/')
    const match = this.#match(pathBelow(path, call.mountPoint ?? 0))
    if (match !== undefined || call.next === undefined) return this.#serveRoute({ ...call, ...routed(match) })
    call.next()
    return Promise.resolve()
  }

  #serveRoute(call: NodeCall<H>): Promise<void> {
    return serveNode(this.#core, this.#wire, call)
  }

  #serveFetch(match: Match | undefined, request: Request, host: H | undefined): Promise<Response> {
    return serveFetch(this.#core, this.#wire, { request, host: host as H, ...routed(match) })
  }
}

function routed(match: Match | undefined): { readonly route?: Route; readonly params?: () => Params } {
  return match === undefined ? {} : { route: match.route, params: () => decodeParams(match) }
}

/** What a host's own listener throws must not fail the request, nor hide the error it was told of. */
function tell<H>(options: ObjectServiceOptions<H>, error: StowageError, context: ErrorContext<H>): void {
  const { logger, onError } = options
  const { requestId } = context
  try {
    if (error.statusCode >= 500) logger?.error({ err: error, code: error.code, requestId }, error.message)
    onError?.(error, context)
  } catch (thrown) {
    logger?.error({ err: thrown, requestId }, 'onError threw')
  }
}
