import type { Access } from '../access/access.ts'
import type { RequestRate } from '../access/request-rate.ts'
import type { Clock, Environment } from '../environment.ts'
import type { StowageError } from '../errors.ts'
import type { ServiceEvent } from '../events/events.ts'
import type { ServiceExtension } from './extension.ts'
import type { CorsOptions } from '../http/cors.ts'
import type { Limits } from '../limits.ts'
import type { Logger } from '../logger.ts'
import type { ProjectQuota } from '../object/graph-store.ts'
import type { StorageBackend } from '../storage/backend.ts'
import type { ObjectStore } from '../store/plain/object-store.ts'
import type { CollectionSettings } from './collection-settings.ts'
import type { CompactionSchedule } from './upkeep-schedule.ts'

/** The request that failed. */
export interface ErrorContext<H> {
  /** As in the answer's header `x-request-id`. */
  readonly requestId: string
  /** The value that the host passed with the request. */
  readonly host: H
}

/**
 * The quota of every project, or a function that answers that of one; `undefined` for none. It is asked at the
 * beginning of each upload.
 */
export type ServiceQuota =
  | ProjectQuota
  | ((projectId: string) => ProjectQuota | undefined | Promise<ProjectQuota | undefined>)

/**
 * The storage of the objects: a backend, over which Stowage keeps them in packs, or an object store of the host's own.
 */
export type ServiceStorage = { readonly backend: StorageBackend } | { readonly store: ObjectStore }

/**
 * `H` is the type of the host's request that access and `onError` receive: the `IncomingMessage` under `node`, the
 * second argument of `fetch`.
 */
export interface CommonServiceOptions<H> {
  /** Required, so that nobody serves without authentication by accident. `openAccess()` opts out. */
  readonly access: Access<H>
  /** The prefix of the paths, such as `/models`. */
  readonly prefix?: string
  /** Limits that replace those of `DEFAULT_LIMITS`. */
  readonly limits?: Partial<Limits>
  /**
   * How much each project may hold: for all the same, or by project. An upload beyond it is refused with 507
   * `quota_exceeded`, and before it is read if its length alone is too much. No bound by default. Only over a backend.
   */
  readonly quota?: ServiceQuota
  /** How many requests each principal may make; more receive 429 with `Retry-After`. Unlimited by default. */
  readonly requestRate?: RequestRate
  /** The status of a successful upload. 200 by default; 201 for clients that insist on it. */
  readonly uploadStatus?: 200 | 201
  /** Answers browsers on other origins. Without it a host's own middleware may. */
  readonly cors?: CorsOptions
  /** `next` hands errors that come before the headers to the host: to `next(error)` under `node`, as a rejection under `fetch`. */
  readonly errors?: 'answer' | 'next'
  /**
   * Receives failures inside the server (status 500 and above), with their cause, and the messages of its other levels.
   */
  readonly logger?: Logger
  /** Receives every failure, whether or not a response was sent. The cause is in `error.cause`. */
  readonly onError?: (error: StowageError, context: ErrorContext<H>) => void
  /**
   * Receives uploads, downloads, requests, errors and more; see `ServiceEvent`. Its errors go to the logger and affect
   * nothing.
   */
  readonly onEvent?: (event: ServiceEvent) => void
  /** The level at which the logger gets a line for each request over HTTP. None by default. */
  readonly requestLog?: 'debug' | 'info'
  /**
   * The value of `service` in events, which distinguishes several services in one process. Some hex digits by default.
   */
  readonly name?: string
  /** How long a connection may make no progress, in either direction, before it is cut. 60,000 by default. */
  readonly stallTimeoutMs?: number
  /**
   * Bytes a second that the body of a request must bring, over any 20 s that the server waits for it. 500 by default; 0
   * for no such bound.
   */
  readonly bodyBytesPerSecondMin?: number
  /**
   * Memory for tables, plans, and requests: uploads, lists of ids, bodies, the buffers of responses. 96 MB by default.
   */
  readonly memoryBytesMax?: number
  /** How long a request queues for memory before it is refused with 503. 10,000 by default. */
  readonly memoryWaitMs?: number
  /**
   * The periods of all collections of this service that name none: by calls, over HTTP, on pages and by the schedule.
   * With `everyMs` it collects all projects again and again: `project(id).collect` with `dryRun` tells what it would do.
   */
  readonly collection?: CollectionSettings | undefined
  /** Compacts all projects again and again, with a small share of a processor. Never by default. */
  readonly compaction?: CompactionSchedule | undefined
  /** Extensions that serve more paths on the same storage and access, such as automation functions. */
  readonly extensions?: readonly ServiceExtension<H>[]
  /** The time of day. That of the environment by default. */
  readonly clock?: Clock
  /**
   * The source of time, timers and randomness, and the place of compression. The process by default;
   * `stowage/simulation` has one that a seed decides.
   */
  readonly environment?: Environment
  /** Makes the ids of requests and packs: 32 hex digits of randomness. */
  readonly newId?: () => string
}

/** The storage of the objects, and all options of a service. */
export type ObjectServiceOptions<H> = ServiceStorage & CommonServiceOptions<H>
