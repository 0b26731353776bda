import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { availableParallelism } from 'node:os'
import type { Access } from './access/access.ts'
import { DeflatePool } from './compression/deflate-pool.ts'
import { StowageError } from './errors.ts'
import { Account } from './events/account.ts'
import { type ServiceListener, EventTeller } from './events/teller.ts'
import type { ServiceContext, ServiceExtension } from './extension.ts'
import { createGuard, HttpCore } from './http/core.ts'
import { corsPolicy } from './http/cors.ts'
import { Flights } from './http/flights.ts'
import { type Mountable, Surface } from './http/mountable.ts'
import type { HostCall, Next } from './http/node.ts'
import { type EndpointName, OBJECT_ROUTES, objectResources, type Params, type Route } from './http/object-routes.ts'
import { descriptionOperation } from './http/operations/description.ts'
import { createOperations } from './http/operations/index.ts'
import { normalizePrefix, type Resource, RouteTable } from './http/router.ts'
import type { PathParams } from './http/exchange.ts'
import { type Limits, resolveLimits } from './limits.ts'
import type { GraphStore } from './object/graph-store.ts'
import type { Logger } from './logger.ts'
import { type ProjectObjects, projectObjects } from './project-objects.ts'
import { type ServiceStatus, StateKeeper } from './service-status.ts'
import { graphStoreOf } from './service-storage.ts'
import type { ErrorContext, ObjectServiceOptions } from './service-options.ts'

export { continueOnExpect } from './http/continue.ts'

/** One endpoint for a host's own router. Its parameters come decoded; they are checked here all the same. */
export interface Endpoint<H = unknown> {
  readonly method: 'GET' | 'POST'
  /** Such as `/objects/:projectId/:objectId`, without the prefix. */
  readonly path: string
  /** Serves Node's `(req, res)`. With `next`, errors go to the host where the service was told `errors: 'next'`. */
  node(req: IncomingMessage, res: ServerResponse, params: Params, next?: Next): void
  /** The same for hosts that Node's `(req, res)` does not tell everything. Resolves when the answer is out, or `next` was called. Never rejects. */
  serve(call: HostCall<H>, params: Params): Promise<void>
  /** Serves a fetch-style request. Rejects only where the service was told `errors: 'next'`, and then with a `StowageError`. */
  fetch(request: Request, params: Params, host?: H): Promise<Response>
}

/** Every endpoint by its name. */
export type Endpoints<H> = { readonly [E in EndpointName]: Endpoint<H> }

/** A service, made by `createObjectService`. What it is mounted by can be passed around by itself: `node`, `serve`, `fetch`. */
export interface ObjectService<H = unknown> extends Mountable<H>, AsyncDisposable {
  /** Opens the storage. Rejects with the cause; requests wait for it, and fail while it fails. */
  ready(): Promise<void>
  readonly endpoints: Endpoints<H>
  /** Throws `invalid_id`. */
  project(projectId: string): ProjectObjects
  /** Ids of the projects that hold something, in batches. */
  projects(): AsyncIterable<readonly string[]>
  /** Stands in its events as `service`. */
  readonly name: string
  /** Tells the listener every event of this service from now on, until the function that it returns is called. What the listener throws harms nothing. */
  subscribe(listener: ServiceListener): () => void
  /** How it is at the moment. Opens and asks nothing. */
  status(): ServiceStatus
  /** Answers 503 to new requests, waits `graceMs` (10,000) for those under way, aborts the rest, and closes the storage it was given. */
  close(options?: { readonly graceMs?: number }): Promise<void>
}

const GRACE_MS = 10_000
/** 24 days: a timer of Node that is set to more fires at once. What is added to the grace has a minute. */
const GRACE_MS_MAX = 2 ** 31 - 60_001
const NAME_BYTES = 4
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
  readonly name: string
  readonly prefix: string
  readonly beginnings: readonly string[]
  readonly node: ObjectService<H>['node']
  readonly serve: ObjectService<H>['serve']
  readonly fetch: ObjectService<H>['fetch']
  readonly endpoints: Endpoints<H>
  readonly #store: GraphStore
  readonly #limits: Limits
  readonly #flights = new Flights()
  readonly #teller: EventTeller
  readonly #keeper = new StateKeeper()
  readonly #compressor = new DeflatePool({ level: COMPRESSION_LEVEL, concurrency: availableParallelism() })
  readonly #extensions: readonly ServiceExtension<H>[]
  #opening: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(options: ObjectServiceOptions<H>) {
    const newId = options.newId ?? ((): string => randomBytes(16).toString('hex'))
    this.name = options.name ?? randomBytes(NAME_BYTES).toString('hex')
    this.#teller = new EventTeller({
      service: this.name,
      onEvent: options.onEvent,
      logger: options.logger,
      requestLog: options.requestLog,
    })
    this.#limits = resolveLimits(options.limits)
    this.#store = graphStoreOf(options, {
      limits: this.#limits,
      newId,
      clock: options.clock,
      memoryBytesMax: options.memoryBytesMax,
      onBackgroundError: (error) => this.#failedBesideRequests(error, options.logger),
    })
    this.#extensions = options.extensions ?? []
    const access = this.#extensions.reduce((inner, extension) => extension.access?.(inner) ?? inner, options.access)
    const context = this.#contextOf(options, access, newId)
    const resources = objectResources(
      createOperations<H>({
        store: this.#store,
        guard: context.guard,
        limits: this.#limits,
        compressor: this.#compressor,
        uploadStatus: options.uploadStatus ?? 200,
      }),
    )
    const all = [
      ...Object.values(resources),
      this.#descriptionOf(context.prefix),
      ...this.#extensions.flatMap((extension) => extension.attach(context)),
    ]
    const wire = {
      stallTimeoutMs: options.stallTimeoutMs ?? STALL_TIMEOUT_MS,
      requestBytesMax: this.#limits.requestBytesMax,
    }
    const surface = new Surface(this.#coreOf(options, newId), new RouteTable(all, options.prefix), wire)
    this.prefix = surface.prefix
    this.beginnings = surface.beginnings
    this.node = surface.node
    this.serve = surface.serve
    this.fetch = surface.fetch
    this.endpoints = Object.fromEntries(
      Object.entries(resources).map(([name, resource]) => [
        name,
        endpoint(surface, OBJECT_ROUTES[name as EndpointName], resource),
      ]),
    ) as Endpoints<H>
  }

  ready(): Promise<void> {
    if (this.#opening === undefined) {
      this.#opening = this.#open()
      this.#keeper.opening(this.#opening)
    }
    return this.#opening
  }

  project(projectId: string): ProjectObjects {
    return projectObjects(
      {
        store: this.#store,
        ready: () => this.ready(),
        remove: (id) => this.#remove(id),
        flights: this.#flights,
        limits: this.#limits,
        openAccount: (projectId) => new Account({ teller: this.#teller, inFlight: this.#keeper.inFlight, projectId }),
      },
      projectId,
    )
  }

  async *projects(): AsyncGenerator<readonly string[]> {
    this.#flights.checkOpen()
    await this.ready()
    const told = new Set<string>()
    for (const source of [this.#store, ...this.#extensions]) {
      for await (const ids of source.projects?.() ?? []) {
        const others = ids.filter((id) => !told.has(id))
        for (const id of others) told.add(id)
        if (others.length > 0) yield others
      }
    }
  }

  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = this.#close(Math.min(options.graceMs ?? GRACE_MS, GRACE_MS_MAX))
      this.#keeper.closing(this.#closing)
    }
    return this.#closing
  }

  subscribe(listener: ServiceListener): () => void {
    return this.#teller.subscribe(listener)
  }

  status(): ServiceStatus {
    const { uploads: uploadMemory, answers: answerMemory } = this.#store.memory?.() ?? {}
    return {
      state: this.#keeper.state,
      requestsInFlight: this.#flights.size,
      uploadsInFlight: this.#keeper.inFlight.uploads,
      downloadsInFlight: this.#keeper.inFlight.downloads,
      ...(uploadMemory === undefined
        ? {}
        : { uploadMemory: { heldBytes: uploadMemory.heldBytes, limitBytes: uploadMemory.limitBytes } }),
      ...(answerMemory === undefined
        ? {}
        : { answerMemory: { heldBytes: answerMemory.heldBytes, limitBytes: answerMemory.limitBytes } }),
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #contextOf(options: ObjectServiceOptions<H>, access: Access<H>, newId: () => string): ServiceContext<H> {
    return {
      backend: 'backend' in options ? options.backend : undefined,
      graphs: this.#store,
      guard: createGuard(access),
      authenticate: (request) => access.authenticate(request),
      authorize: (principal, projectId, right) => access.authorize(principal, projectId, right),
      fetch: (request, host) => this.fetch(request, host),
      projects: () => this.projects(),
      ready: () => this.ready(),
      prefix: normalizePrefix(options.prefix),
      limits: this.#limits,
      clock: options.clock ?? Date,
      newId,
      logger: options.logger,
    }
  }

  #descriptionOf(prefix: string): Resource<H> {
    const areas = this.#extensions.flatMap(({ area }) => area ?? [])
    return { path: '/api/openapi.json', operations: { GET: descriptionOperation<H>({ prefix, areas }) } }
  }

  #coreOf(options: ObjectServiceOptions<H>, newRequestId: () => string): HttpCore<H> {
    return new HttpCore<H>({
      ready: () => this.ready(),
      flights: this.#flights,
      cors: options.cors === undefined ? undefined : corsPolicy(options.cors),
      errors: options.errors ?? 'answer',
      failed: (error, context) => {
        this.#keeper.erred(error)
        tell(options, error, context as ErrorContext<H>)
      },
      newRequestId,
      openAccount: ({ requestId, method }) =>
        new Account({ teller: this.#teller, inFlight: this.#keeper.inFlight, request: { requestId, method } }),
    })
  }

  async #open(): Promise<void> {
    await this.#store.ready()
    for (const extension of this.#extensions) await extension.open?.()
  }

  #failedBesideRequests(error: unknown, logger: Logger | undefined): void {
    this.#keeper.erred(error)
    logger?.error({ err: error }, 'work beside requests failed')
    if (error instanceof StowageError && error.code === 'corrupt_data') this.#teller.tellError(error, {})
  }

  async #remove(projectId: string): Promise<void> {
    await this.#store.remove(projectId)
    for (const extension of this.#extensions) await extension.removeProject?.(projectId)
  }

  async #close(graceMs: number): Promise<void> {
    if (this.#opening !== undefined) for (const extension of this.#extensions) await extension.close?.({ graceMs })
    await this.#flights.close(graceMs)
    this.#compressor.close()
    await this.#opening?.catch(() => undefined)
    await this.#store.close()
  }
}

function endpoint<H>(surface: Surface<H>, route: Route, resource: Resource<H>): Endpoint<H> {
  const { method, path } = route
  const named = (params: Params): PathParams => ({ ...params })
  return {
    method,
    path,
    node: (req, res, params, next) =>
      void surface.serveResource(resource, { req, res, ...(next === undefined ? {} : { next }) }, named(params)),
    serve: (call, params) => surface.serveResource(resource, call, named(params)),
    fetch: (request, params, host) => surface.fetchResource(resource, { request, host: host as H }, named(params)),
  }
}

/** The server is well, and cannot take this request now. */
const REFUSALS: ReadonlySet<string> = new Set(['overloaded', 'closing'])

/** What a host's own listener throws must not fail the request, nor hide the error it was told of. */
function tell<H>(options: ObjectServiceOptions<H>, error: StowageError, context: ErrorContext<H>): void {
  const { logger, onError } = options
  const { requestId } = context
  try {
    const fields = { err: error, code: error.code, requestId }
    if (REFUSALS.has(error.code)) logger?.warn?.(fields, error.message)
    else if (error.statusCode >= 500) logger?.error(fields, error.message)
    onError?.(error, context)
  } catch (thrown) {
    logger?.error({ err: thrown, requestId }, 'onError threw')
  }
}
