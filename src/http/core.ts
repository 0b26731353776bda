import type { Access, AccessRequest, Principal, AccessRight } from '../access/access.ts'
import { principalKey } from '../access/principal-key.ts'
import { EventLoopShare } from '../async/event-loop-share.ts'
import { isServiceError, StowageError } from '../errors.ts'
import type { RequestTrace } from '../events/request-trace.ts'
import { allowedOrigin, type CorsPolicy, corsHeaders, preflightHeaders } from './cors.ts'
import { errorAnswer, toStowageError } from './error-answer.ts'
import { checkSingleHeaders } from './header-values.ts'
import type { Answer, Exchange, Operation, PathParams } from './exchange.ts'
import type { InFlightRequests } from '../async/in-flight-requests.ts'
import type { MemoryBudget, MemoryLease } from '../memory/memory-budget.ts'
import { allowOf, type Method, type Resource } from './router.ts'

/** A request before its path's parameters are known to be ids. */
export type IncomingRequest<H> = Omit<Exchange<H>, 'params' | 'trace' | 'memory'> & {
  /** Ends the request. */
  readonly abort: (reason: Error) => void
  /** The same object for all requests that come on one connection, one after the other. */
  readonly connection?: object | undefined
}

/** The resource that a request is for. `params` throws `invalid_request` for bad percent-encoding. */
export interface Routed<H> {
  readonly resource: Resource<H>
  readonly params: () => PathParams
}

export interface CoreOptions {
  readonly ready: () => Promise<void>
  readonly inFlightRequests: InFlightRequests
  readonly cors: CorsPolicy | undefined
  /** `next` hands errors to the host instead of answering them. */
  readonly errors: 'answer' | 'next'
  /** Told of every failure, answered or not. Must not throw. */
  readonly failed: (error: StowageError, context: { readonly requestId: string; readonly host: unknown }) => void
  readonly newRequestId: () => string
  readonly startTrace: (request: { readonly requestId: string; readonly method: string }) => RequestTrace
  readonly memory: MemoryBudget
}

/** RFC 9110, section 11.6.1: a 401 names a scheme. No browser asks for a password because of this one. */
const NOT_SIGNED_IN = { message: 'this request is not signed in', challenge: 'Session realm="stowage"' }

const REQUEST_ID = /^[\w.:+/=-]{1,128}$/

/** The part that both kinds of hosts share: everything between an arrived request and its response. */
export class HttpCore<H> {
  readonly #options: CoreOptions
  readonly #traces = new WeakMap<object, RequestTrace>()
  readonly #eventLoopShare = new EventLoopShare()

  constructor(options: CoreOptions) {
    this.#options = options
  }

  get inFlightRequests(): InFlightRequests {
    return this.#options.inFlightRequests
  }

  /** The value of `x-request-id` if it is harmless to repeat, otherwise a new one. */
  requestId(incoming: string | null | undefined): string {
    return typeof incoming === 'string' && REQUEST_ID.test(incoming) ? incoming : this.#options.newRequestId()
  }

  /** Whether the host takes errors itself. */
  get handsOver(): boolean {
    return this.#options.errors === 'next'
  }

  /**
   * The answer of the resource that the request is for; 404 without one. Rejects only with `handOver`, and then with a
   * `StowageError`.
   */
  answer(incoming: IncomingRequest<H>, routed: Routed<H> | undefined, handOver: boolean): Promise<Answer> {
    return this.#guarded(incoming, handOver, async (trace, memory) => {
      if (routed === undefined) throw new StowageError('route_not_found', 'there is nothing at this path')
      const { resource, params } = routed
      checkSingleHeaders(incoming.headers)
      if (incoming.method === 'OPTIONS') return this.#optionsAnswer(incoming, allowOf(resource))
      const operation = operationOf(resource, incoming.method)
      if (operation === undefined) throw methodNotAllowed(allowOf(resource))
      const exchange = exchangeOf(incoming, { params: params(), trace, memory })
      resource.check?.(exchange.params)
      trace.routed(resource.path, exchange.params.projectId)
      this.#options.inFlightRequests.checkOpen()
      await this.#open()
      return operation(exchange)
    })
  }

  /**
   * Reports an error to the host, even if it came too late for a response. A client that disconnects is not a failure.
   */
  report(thrown: unknown, incoming: IncomingRequest<H>): StowageError {
    const error = toStowageError(thrown)
    const { signal, requestId, host } = incoming
    if (!isClientGone(signal)) {
      this.#traces.get(incoming)?.failed(error)
      this.#options.failed(error, { requestId, host })
    }
    return error
  }

  async #guarded(
    incoming: IncomingRequest<H>,
    handOver: boolean,
    work: (trace: RequestTrace, memory: MemoryLease) => Promise<Answer>,
  ): Promise<Answer> {
    const trace = this.#options.startTrace(incoming)
    this.#traces.set(incoming, trace)
    const { signal, abort, connection } = incoming
    const memory = this.#options.memory.open({ signal, revoke: abort, connection })
    const answer = await work(trace, memory).catch((thrown: unknown) => {
      memory.release()
      const error = this.report(thrown, incoming)
      trace.answered(error.statusCode, error.code)
      if (handOver) {
        trace.end()
        throw error
      }
      return errorAnswer(error)
    })
    return this.#completed(answer, incoming, trace, memory)
  }

  /** The response with the headers that all have, paced, with its bytes counted and its end recorded. */
  #completed(answer: Answer, incoming: IncomingRequest<H>, trace: RequestTrace, memory: MemoryLease): Answer {
    const { status, headers, body, length, roomBytes, sent } = answer
    if (status < 400) trace.answered(status)
    const paced = body === undefined || body instanceof Uint8Array ? body : this.#eventLoopShare.paced(body)
    const release = (): void => {
      answer.release?.()
      memory.release()
      trace.end()
    }
    return {
      status,
      headers: { ...headers, ...this.#commonHeaders(incoming, headers.Vary) },
      body: trace.sending(paced, incoming.method === 'HEAD'),
      length,
      roomBytes,
      sent,
      release,
    }
  }

  async #open(): Promise<void> {
    try {
      await this.#options.ready()
    } catch (cause) {
      throw isServiceError(cause)
        ? cause
        : new StowageError('storage_unavailable', 'the storage could not be opened', { cause })
    }
  }

  #commonHeaders(incoming: IncomingRequest<H>, vary: string | undefined): Record<string, string> {
    const common = { 'X-Request-Id': incoming.requestId, 'X-Content-Type-Options': 'nosniff' }
    const { cors } = this.#options
    return cors === undefined
      ? common
      : { ...common, ...corsHeaders(cors, allowedOrigin(cors, incoming.headers.get('origin')), vary) }
  }

  #optionsAnswer(incoming: IncomingRequest<H>, allow: string): Answer {
    const { cors } = this.#options
    const preflight = cors === undefined ? {} : preflightHeaders(cors, allow, incoming.headers)
    return { status: 204, headers: { Allow: allow, ...preflight } }
  }
}

function exchangeOf<H>(
  { method, path, isPathCut, query, headers, body, signal, requestId, host }: IncomingRequest<H>,
  { params, trace, memory }: Pick<Exchange<H>, 'params' | 'trace' | 'memory'>,
): Exchange<H> {
  return { method, path, isPathCut, query, headers, params, body, signal, requestId, host, trace, memory }
}

/**
 * Lets a request through to its operation, and identifies its principal: 401 without a principal, 403 without the
 * right.
 */
export type Guard<H> = (exchange: Exchange<H>, right: AccessRight) => Promise<Principal>

export function createGuard<H>(access: Access<H>): Guard<H> {
  return async (exchange, right) => {
    const { headers, method, path, host, params } = exchange
    const principal = await access.authenticate({ headers, method, path, host })
    if (principal === undefined) throw unauthenticated(access, { headers, method, path, host })
    exchange.memory.belongsTo({ principal: principalKey(principal), projectId: params.projectId })
    if (!(await access.authorize(principal, params.projectId, right))) {
      const message = access.refusals?.forbidden?.(principal, params.projectId, right)
      throw new StowageError('forbidden', message ?? `the right to ${right} in this project is missing`)
    }
    return principal
  }
}

/** The texts are those of the access: only it knows how requests authenticate. */
export function unauthenticated<H>(access: Pick<Access<H>, 'refusals'>, request: AccessRequest<H>): StowageError {
  const { message, challenge } = access.refusals?.unauthenticated?.(request) ?? NOT_SIGNED_IN
  return new StowageError('unauthenticated', message, { headers: { 'WWW-Authenticate': challenge } })
}

function isClientGone(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof StowageError && signal.reason.code === 'request_aborted'
}

function operationOf<H>(resource: Resource<H>, method: string): Operation<H> | undefined {
  const name = method === 'HEAD' ? 'GET' : method
  return Object.hasOwn(resource.operations, name) ? resource.operations[name as Method] : undefined
}

function methodNotAllowed(allow: string): StowageError {
  return new StowageError('method_not_allowed', `this path allows ${allow}`, { headers: { Allow: allow } })
}
