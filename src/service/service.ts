import type { Access } from '../access/access.ts'
import { limitedAccess } from '../access/request-rate.ts'
import { DeflatePool } from '../compression/deflate-pool.ts'
import { randomId, REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { RequestTrace, type RequestTraceOptions } from '../events/request-trace.ts'
import { type ServiceListener, EventDispatcher } from '../events/event-dispatcher.ts'
import type { ServiceContext, ServiceExtension } from './extension.ts'
import { createGuard, HttpCore } from '../http/core.ts'
import { corsPolicy } from '../http/cors.ts'
import { InFlightRequests } from '../async/in-flight-requests.ts'
import { Router } from '../http/service-router.ts'
import { type EndpointName, OBJECT_ROUTES, objectResources, type Params, type Route } from '../http/object-routes.ts'
import { DESCRIPTION_PATH, descriptionOperation } from '../http/endpoints/description.ts'
import { createOperations } from '../http/endpoints/index.ts'
import { normalizePrefix, type Resource, RouteTable } from '../http/router.ts'
import type { PathParams } from '../http/exchange.ts'
import { type Limits, resolveLimits } from '../limits.ts'
import { divideMemory, type ServiceMemory } from '../memory/service-memory.ts'
import type { GraphStore, StoreTotals } from '../object/graph-store.ts'
import type { Logger } from '../logger.ts'
import type { Endpoint, Endpoints, ObjectService } from './object-service.ts'
import { type ProjectObjects, projectObjects } from './project-objects.ts'
import { type ServiceStatus, ServiceLifecycle } from './status.ts'
import { isKnownProject, knownProjects, type ProjectSources } from './known-projects.ts'
import { type RootSources, usageOf } from './roots.ts'
import { totalsOf } from './totals.ts'
import { toldPins } from './told-pins.ts'
import { ServiceUpkeep } from './service-upkeep.ts'
import type { CollectAllOptions, CollectionTotals, CompactAllOptions, CompactionTotals } from './all-projects.ts'
import { claimStorage, graphStoreOf } from './storage.ts'
import type { ErrorContext, ObjectServiceOptions } from './options.ts'

export { continueOnExpect } from '../http/continue.ts'

const GRACE_MS = 10_000
/** 24 days: a timer of Node that is set to more fires at once. What is added to the grace has a minute. */
const GRACE_MS_MAX = 2 ** 31 - 60_001
const NAME_DIGITS = 8
const STALL_TIMEOUT_MS = 60_000
const BODY_BYTES_PER_SECOND_MIN = 500
/** Fastest, and on answers that are not stored compressed as small as higher levels within a few percent. */
const COMPRESSION_LEVEL = 1

type OwnParts = Pick<ServiceContext<never>, 'backend' | 'newId'>

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
  readonly pathPrefixes: readonly string[]
  readonly node: ObjectService<H>['node']
  readonly serve: ObjectService<H>['serve']
  readonly fetch: ObjectService<H>['fetch']
  readonly endpoints: Endpoints<H>
  readonly #store: GraphStore
  readonly #limits: Limits
  readonly #memory: ServiceMemory
  readonly #environment: Environment
  readonly #inFlightRequests: InFlightRequests
  readonly #events: EventDispatcher
  readonly #lifecycle = new ServiceLifecycle()
  readonly #compressor: DeflatePool
  readonly #extensions: readonly ServiceExtension<H>[]
  readonly #upkeep: ServiceUpkeep
  #opening: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(options: ObjectServiceOptions<H>) {
    const environment = options.environment ?? REAL_ENVIRONMENT
    const clock = options.clock ?? environment
    const newId = options.newId ?? ((): string => randomId(environment))
    this.#environment = environment
    this.#inFlightRequests = new InFlightRequests(environment)
    this.#compressor = new DeflatePool({ level: COMPRESSION_LEVEL, environment })
    this.name = options.name ?? randomId(environment).slice(0, NAME_DIGITS)
    this.#events = new EventDispatcher({
      service: this.name,
      onEvent: options.onEvent,
      logger: options.logger,
      requestLog: options.requestLog,
    })
    this.#limits = resolveLimits(options.limits)
    this.#memory = divideMemory(options.memoryBytesMax, { waitMs: options.memoryWaitMs, environment })
    const storage = claimStorage(options, environment)
    this.#store = graphStoreOf(storage, {
      limits: this.#limits,
      newId,
      clock,
      environment,
      quota: options.quota,
      memory: this.#memory,
      onBackgroundError: (error) => this.#failedBesideRequests(error, options.logger),
    })
    this.#extensions = options.extensions ?? []
    this.#upkeep = this.#upkeepOf(options)
    const own =
      options.requestRate === undefined ? options.access : limitedAccess(options.access, options.requestRate, clock)
    const access = this.#extensions.reduce((inner, extension) => extension.access?.(inner) ?? inner, own)
    const backend = 'backend' in storage ? storage.backend : undefined
    const context = this.#contextOf(options, { backend, newId }, access)
    const resources = objectResources(
      createOperations<H>({
        store: this.#store,
        guard: context.guard,
        limits: this.#limits,
        compressor: this.#compressor,
        uploadStatus: options.uploadStatus ?? 200,
        logger: options.logger,
      }),
    )
    const all = [
      ...Object.values(resources),
      this.#description(),
      ...this.#extensions.flatMap((extension) => extension.attach(context)),
    ]
    const wire = {
      stallTimeoutMs: options.stallTimeoutMs ?? STALL_TIMEOUT_MS,
      bodyBytesPerSecondMin: options.bodyBytesPerSecondMin ?? BODY_BYTES_PER_SECOND_MIN,
      requestBytesMax: this.#limits.requestBytesMax,
    }
    const router = new Router(this.#coreOf(options, newId), new RouteTable(all, options.prefix), wire)
    this.prefix = router.prefix
    this.pathPrefixes = router.pathPrefixes
    this.node = router.node
    this.serve = router.serve
    this.fetch = router.fetch
    this.endpoints = Object.fromEntries(
      Object.entries(resources).map(([name, resource]) => [
        name,
        endpoint(router, OBJECT_ROUTES[name as EndpointName], resource),
      ]),
    ) as Endpoints<H>
  }

  ready(): Promise<void> {
    if (this.#opening === undefined) {
      this.#opening = this.#open()
      this.#lifecycle.opening(this.#opening)
    }
    return this.#opening
  }

  project(projectId: string): ProjectObjects {
    return projectObjects(
      {
        store: this.#store,
        ready: () => this.ready(),
        remove: (id) => this.#remove(id),
        upkeepOf: (id) => this.#upkeep.of(id),
        inFlightRequests: this.#inFlightRequests,
        limits: this.#limits,
        compressor: this.#compressor,
        memory: this.#memory.requests,
        environment: this.#environment,
        startTrace: (projectId) => this.#startTrace({ projectId }),
      },
      projectId,
    )
  }

  async *projects(): AsyncGenerator<readonly string[]> {
    this.#inFlightRequests.checkOpen()
    yield* knownProjects(this.#sources)
  }

  collect(options?: CollectAllOptions): Promise<CollectionTotals> {
    return this.#upkeep.collect(options)
  }

  compact(options?: CompactAllOptions): Promise<CompactionTotals> {
    return this.#upkeep.compact(options)
  }

  totals(): Promise<StoreTotals> {
    return totalsOf(this.#sources, this.#inFlightRequests)
  }

  close(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#closing === undefined) {
      this.#closing = this.#close(Math.min(options.graceMs ?? GRACE_MS, GRACE_MS_MAX))
      this.#lifecycle.closing(this.#closing)
    }
    return this.#closing
  }

  subscribe(listener: ServiceListener): () => void {
    return this.#events.subscribe(listener)
  }

  status(): ServiceStatus {
    const { requests: requestMemory, answers: answerMemory } = this.#store.memory?.() ?? {}
    return {
      state: this.#lifecycle.state,
      requestsInFlight: this.#inFlightRequests.size,
      uploadsInFlight: this.#lifecycle.inFlight.uploads,
      downloadsInFlight: this.#lifecycle.inFlight.downloads,
      ...(requestMemory === undefined
        ? {}
        : { requestMemory: { heldBytes: requestMemory.heldBytes, limitBytes: requestMemory.limitBytes } }),
      ...(answerMemory === undefined
        ? {}
        : { answerMemory: { heldBytes: answerMemory.heldBytes, limitBytes: answerMemory.limitBytes } }),
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #sources(): RootSources & ProjectSources {
    return { store: this.#store, extensions: this.#extensions, ready: () => this.ready() }
  }

  #upkeepOf(options: ObjectServiceOptions<H>): ServiceUpkeep {
    return new ServiceUpkeep({
      ...this.#sources,
      inFlightRequests: this.#inFlightRequests,
      events: this.#events,
      environment: this.#environment,
      collection: options.collection,
      compaction: options.compaction,
      projects: () => this.projects(),
      onError: (error) => this.#failedBesideRequests(error, options.logger),
    })
  }

  #contextOf(options: ObjectServiceOptions<H>, { backend, newId }: OwnParts, access: Access<H>): ServiceContext<H> {
    return {
      backend,
      graphs: this.#store,
      epochs: this.#store.epochs,
      janitor: this.#store.janitor,
      pins: this.#store.pins && toldPins(this.#store.pins, this.#events),
      usage: (projectId, signal) => usageOf(this.#sources, projectId, signal),
      upkeepOf: (projectId) => this.#upkeep.of(projectId),
      emit: (type, make) => this.#events.emit(type, make),
      guard: createGuard(access),
      authenticate: (request) => access.authenticate(request),
      authorize: (principal, projectId, right) => access.authorize(principal, projectId, right),
      fetch: (request, host) => this.fetch(request, host),
      projects: () => this.projects(),
      holds: (projectId) => isKnownProject(this.#sources, projectId),
      ready: () => this.ready(),
      prefix: normalizePrefix(options.prefix),
      limits: this.#limits,
      clock: options.clock ?? this.#environment,
      environment: this.#environment,
      newId,
      logger: options.logger,
    }
  }

  #description(): Resource<H> {
    const areas = this.#extensions.flatMap(({ area }) => area ?? [])
    return { path: DESCRIPTION_PATH, operations: { GET: descriptionOperation<H>({ areas }) } }
  }

  #coreOf(options: ObjectServiceOptions<H>, newRequestId: () => string): HttpCore<H> {
    return new HttpCore<H>({
      ready: () => this.ready(),
      inFlightRequests: this.#inFlightRequests,
      memory: this.#memory.requests,
      cors: options.cors === undefined ? undefined : corsPolicy(options.cors),
      errors: options.errors ?? 'answer',
      failed: (error, context) => {
        this.#lifecycle.erred(error)
        tell(options, error, context as ErrorContext<H>)
      },
      newRequestId,
      startTrace: ({ requestId, method }) => this.#startTrace({ request: { requestId, method } }),
    })
  }

  #startTrace(about: Pick<RequestTraceOptions, 'projectId' | 'request'>): RequestTrace {
    const { inFlight } = this.#lifecycle
    return new RequestTrace({ events: this.#events, inFlight, environment: this.#environment, ...about })
  }

  async #open(): Promise<void> {
    await this.#store.ready()
    for (const extension of this.#extensions) await extension.open?.()
    this.#upkeep.start()
  }

  #failedBesideRequests(error: unknown, logger: Logger | undefined): void {
    this.#lifecycle.erred(error)
    logger?.error({ err: error }, 'work beside requests failed')
    if (error instanceof StowageError && error.code === 'corrupt_data') this.#events.emitError(error, {})
  }

  async #remove(projectId: string): Promise<void> {
    await this.#store.remove(projectId)
    for (const extension of this.#extensions) await extension.removeProject?.(projectId)
    this.#events.emit('deletion', () => ({ projectId, kind: 'project' as const, action: 'deleted' as const }))
  }

  async #close(graceMs: number): Promise<void> {
    await this.#upkeep.stop()
    if (this.#opening !== undefined) for (const extension of this.#extensions) await extension.close?.({ graceMs })
    await this.#inFlightRequests.close(graceMs)
    this.#compressor.close()
    await this.#opening?.catch(() => undefined)
    await this.#store.close()
  }
}

function endpoint<H>(router: Router<H>, route: Route, resource: Resource<H>): Endpoint<H> {
  const { method, path } = route
  const named = (params: Params): PathParams => ({ ...params })
  return {
    method,
    path,
    node: (req, res, params, next) =>
      void router.serveResource(resource, { req, res, ...(next === undefined ? {} : { next }) }, named(params)),
    serve: (call, params) => router.serveResource(resource, call, named(params)),
    fetch: (request, params, host) => router.fetchResource(resource, { request, host: host as H }, named(params)),
  }
}

/** The server is well, and cannot take this request now. */
const REFUSALS: ReadonlySet<string> = new Set(['overloaded', 'closing', 'maintenance', 'quota_exceeded'])

/** An error of a host's own listener must not fail the request, nor hide the error that it was given. */
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
