import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServiceListener } from '../events/event-dispatcher.ts'
import type { MountedRequest, Next } from '../http/node.ts'
import type { EndpointName, Params } from '../http/object-routes.ts'
import type { Mountable } from '../http/service-router.ts'
import type { StoreTotals } from '../object/graph-store.ts'
import type { CollectAllOptions, CollectionTotals, CompactAllOptions, CompactionTotals } from './all-projects.ts'
import type { ProjectObjects } from './project-objects.ts'
import type { ServiceStatus } from './status.ts'

/** One endpoint for a host's own router. Its parameters come decoded; they are checked here all the same. */
export interface Endpoint<H = unknown> {
  /** The method that the endpoint takes. */
  readonly method: 'GET' | 'POST'
  /** Such as `/objects/:projectId/:objectId`, without the prefix. */
  readonly path: string
  /** Serves Node's `(req, res)`. With `next`, errors go to the host if the service has `errors: 'next'`. */
  node(req: IncomingMessage, res: ServerResponse, params: Params, next?: Next): void
  /**
   * The same for hosts whose `(req, res)` does not contain everything. Resolves when the response is sent, or `next`
   * was called. Never rejects.
   */
  serve(call: MountedRequest<H>, params: Params): Promise<void>
  /** Serves a fetch-style request. Rejects only if the service has `errors: 'next'`, and then with a `StowageError`. */
  fetch(request: Request, params: Params, host?: H): Promise<Response>
}

/** Every endpoint by its name. */
export type Endpoints<H> = { readonly [E in EndpointName]: Endpoint<H> }

/**
 * A service, made by `createObjectService`. Its handlers `node`, `serve` and `fetch` can be passed around on their own.
 */
export interface ObjectService<H = unknown> extends Mountable<H>, AsyncDisposable {
  /** Opens the storage. Rejects with the cause; requests wait for it, and fail while it fails. */
  ready(): Promise<void>
  /** The endpoints, each to be mounted by itself. */
  readonly endpoints: Endpoints<H>
  /** Throws `invalid_id`. */
  project(projectId: string): ProjectObjects
  /** Ids of the projects that hold something, in batches. */
  projects(): AsyncIterable<readonly string[]>
  /**
   * Collects all projects, one after the other, as `project(id).collect` does one. Rejects with an `AggregateError`
   * after all others if projects failed.
   */
  collect(options?: CollectAllOptions): Promise<CollectionTotals>
  /** Compacts all projects, one after the other, as `project(id).compact` does one. Rejects as `collect` does. */
  compact(options?: CompactAllOptions): Promise<CompactionTotals>
  /**
   * How much the projects hold: the 100 largest, and all others together. Cheap: at most 30 s old, or ten times as old
   * as the reading takes. Throws `overloaded` if the first reading takes longer than 2 s; it continues, so a later call
   * succeeds. Throws `not_supported` over a host's own `ObjectStore`.
   */
  totals(): Promise<StoreTotals>
  /** Stands in its events as `service`. */
  readonly name: string
  /**
   * Tells the listener every event of this service from now on, until the function that it returns is called. What the
   * listener throws harms nothing.
   */
  subscribe(listener: ServiceListener): () => void
  /** The current state. Opens and asks nothing. */
  status(): ServiceStatus
  /**
   * Answers 503 to new requests, waits `graceMs` (10,000) for those under way, aborts the rest, and closes the storage
   * it was given.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>
}
