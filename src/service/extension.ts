import type { Access, Principal } from '../access/access.ts'
import type { Clock, Environment } from '../environment.ts'
import type { Guard } from '../http/core.ts'
import type { Resource } from '../http/router.ts'
import type { Limits } from '../limits.ts'
import type { Janitor } from '../object/janitor.ts'
import type { StoreEpochs } from '../object/epochs.ts'
import type { ClosureSelector, GraphStore } from '../object/graph-store.ts'
import type { GraphRoot, PinStore, ProjectUsage } from '../object/roots.ts'
import type { Logger } from '../logger.ts'
import type { EventDispatcher } from '../events/event-dispatcher.ts'
import type { ApiArea } from '../openapi/description/compose.ts'
import type { StorageBackend } from '../storage/backend.ts'
import type { ProjectUpkeep } from './project-upkeep.ts'

/** The parts of a service that an extension may use. None may be used for storage before `open` was called. */
export interface ServiceContext<H> {
  /** `undefined` over a host's own `ObjectStore`. Keys of records begin with the kind `x` and blob names with `x/`: all others are the object store's. */
  readonly backend: StorageBackend | undefined
  readonly graphs: ClosureSelector & Pick<GraphStore, 'pager' | 'collector'>
  /** The store's own time, for periods of grace. `undefined` over a host's own `ObjectStore`. */
  readonly epochs: StoreEpochs | undefined
  /** Which server does what one of all should. `undefined` over a host's own `ObjectStore`. */
  readonly janitor: Janitor | undefined
  /** Objects that are kept with everything below them. `undefined` over a host's own `ObjectStore`. */
  readonly pins: PinStore | undefined
  /** The usage of a project, by its roots. Throws `not_supported` over a host's own `ObjectStore`. */
  readonly usage: (projectId: string, signal: AbortSignal) => Promise<ProjectUsage>
  /** Collection and compaction of a project. */
  readonly upkeepOf: (projectId: string) => ProjectUpkeep
  /** Tells the listeners of the service an event. */
  readonly emit: EventDispatcher['emit']
  /** Ids of the projects that hold something, in batches. Opens the service. */
  readonly projects: () => AsyncIterable<readonly string[]>
  /** Whether a project exists: whether it has objects, or an extension holds something of it, such as a model. */
  readonly holds: (projectId: string) => Promise<boolean>
  /**
   * Opens the service, as its first request does; operations of an extension in process wait for it. Do not await it in
   * `open`.
   */
  readonly ready: () => Promise<void>
  /**
   * Lets a request through to its operation: 401 without a principal, 403 without the right in the project that its
   * path names.
   */
  readonly guard: Guard<H>
  /** Authenticates a request, for paths that name no project. */
  readonly authenticate: Access<H>['authenticate']
  readonly authorize: (principal: Principal, projectId: string, right: 'read' | 'write') => boolean | Promise<boolean>
  /** The whole service, in process: a client within the server passes it as its `fetch`. */
  readonly fetch: (request: Request, host?: H) => Promise<Response>
  readonly prefix: string
  readonly limits: Limits
  readonly clock: Clock
  /** Monotonic time, timers and randomness. */
  readonly environment: Environment
  /** 32 random hex digits, or the result of the host's own `newId`. */
  readonly newId: () => string
  readonly logger: Logger | undefined
}

/**
 * Adds paths to a service, under its prefix, its access and its error shape, on its storage. One extension belongs to
 * one service.
 */
export interface ServiceExtension<H = unknown> {
  /** The extension's additions to the description of the service. */
  readonly area?: ApiArea
  /** Called once, while the service is created. Must not open anything. */
  attach(context: ServiceContext<H>): readonly Resource<H>[]
  /** Wraps the host's access, to accept tokens of the extension's own on every path. Called before `attach`. */
  access?(access: Access<H>): Access<H>
  /** After the store is open, before the first request is served. */
  open?(): Promise<void>
  /** A project was removed: nothing of it may be readable once this resolves. */
  removeProject?(projectId: string): Promise<void>
  /**
   * Objects of a project that the extension needs, in batches: neither they nor the objects below them may be
   * collected.
   */
  roots?(projectId: string): AsyncIterable<readonly GraphRoot[]>
  /** Ids of the projects that it holds something of, in batches. An extension with this method has `holds` too. */
  projects?(): AsyncIterable<readonly string[]>
  /** Whether `projects` lists it. */
  holds?(projectId: string): Promise<boolean>
  /**
   * The service is about to close: background work has `graceMs` to end. Requests are still answered, so that it can.
   */
  close?(options: { readonly graceMs: number }): Promise<void>
}
