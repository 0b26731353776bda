import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HttpCore, Routed } from './core.ts'
import { serveFetch } from './fetch.ts'
import { type MountedRequest, type Next, serveNode } from './node.ts'
import { decodeParams, type Match, pathBelow, type Resource, type RouteTable } from './router.ts'
import type { PathParams } from './exchange.ts'
import { splitTarget } from './target.ts'

/** The part of a service that the mounts of all hosts use. */
export interface Mountable<H = unknown> {
  /**
   * Serves Node's `(req, res)`. A path that does not belong to this service goes to `next`, or gets 404 without one. It
   * can be passed around on its own.
   */
  readonly node: (req: IncomingMessage, res: ServerResponse, next?: Next) => void
  /**
   * The same for hosts whose `(req, res)` does not contain everything: the mounts use it. Resolves when the response is
   * sent, or `next` was called. Never rejects.
   */
  readonly serve: (call: MountedRequest<H>) => Promise<void>
  /** Serves fetch-style hosts, and a host's own tests without a port. It can be passed around on its own. */
  readonly fetch: (request: Request, host?: H) => Promise<Response>
  /** The prefix of all paths: `''`, or as in `/models`. A mount's own prefix comes before it. */
  readonly prefix: string
  /** The literal first parts of all paths, without the prefix, for hosts whose own router has to know them. */
  readonly pathPrefixes: readonly string[]
}

export interface Wire {
  readonly stallTimeoutMs: number
  readonly bodyBytesPerSecondMin: number
  readonly requestBytesMax: number
}

/** A table of resources over one core, for every kind of host. */
export class Router<H> implements Mountable<H> {
  readonly node: Mountable<H>['node']
  readonly serve: Mountable<H>['serve']
  readonly fetch: Mountable<H>['fetch']
  readonly #core: HttpCore<H>
  readonly #table: RouteTable<H>
  readonly #wire: Wire

  constructor(core: HttpCore<H>, table: RouteTable<H>, wire: Wire) {
    this.#core = core
    this.#table = table
    this.#wire = wire
    this.node = (req, res, next) => void this.#serve({ req, res, next })
    this.serve = (call) => this.#serve(call)
    this.fetch = (request, host) =>
      serveFetch(core, wire, { request, host: host as H }, matched(table.match(splitTarget(request.url).path)))
  }

  get prefix(): string {
    return this.#table.prefix
  }

  get pathPrefixes(): readonly string[] {
    return this.#table.pathPrefixes
  }

  /** Serves one resource to a host that routes itself. */
  serveResource(resource: Resource<H>, call: MountedRequest<H>, params: PathParams): Promise<void> {
    return serveNode(this.#core, this.#wire, call, { resource, params: () => params })
  }

  fetchResource(
    resource: Resource<H>,
    call: { readonly request: Request; readonly host: H },
    params: PathParams,
  ): Promise<Response> {
    return serveFetch(this.#core, this.#wire, call, { resource, params: () => params })
  }

  #serve(call: MountedRequest<H>): Promise<void> {
    const path = pathBelow(splitTarget(call.url ?? call.req.url ?? '/').path, call.mountPoint ?? 0)
    const match = path === undefined ? undefined : this.#table.match(path)
    if (match !== undefined || call.next === undefined) return serveNode(this.#core, this.#wire, call, matched(match))
    call.next()
    return Promise.resolve()
  }
}

function matched<H>(match: Match<H> | undefined): Routed<H> | undefined {
  return match && { resource: match.resource, params: () => decodeParams(match) }
}
