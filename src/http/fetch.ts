import { StowageError } from '../errors.ts'
import type { Arrival, HttpCore } from './core.ts'
import { type Answer, parseLength, type RequestBody } from './exchange.ts'
import type { Flight } from './flights.ts'
import { exactBytes, parsedBody } from './parsed-body.ts'
import type { Params, Route } from './router.ts'
import { splitTarget } from './target.ts'
import { pulledStream, readStream } from './web-streams.ts'

export interface FetchOptions {
  /** How long a body may make no progress, reading or writing, before it is given up. */
  readonly stallTimeoutMs: number
  readonly requestBytesMax: number
}

/** Serves one fetch-style request. Rejects only when the host wants errors, and then with a `StowageError`. */
export async function serveFetch<H>(
  core: HttpCore<H>,
  options: FetchOptions,
  call: { readonly request: Request; readonly host: H; readonly route?: Route; readonly params?: () => Params },
): Promise<Response> {
  const { request, route, params } = call
  const flight = core.flights.begin()
  const onAbort = (): void => flight.abort(new StowageError('request_aborted', 'the client went away before the answer was complete'))
  request.signal.addEventListener('abort', onAbort)
  const landed = (): void => {
    request.signal.removeEventListener('abort', onAbort)
    flight.end()
  }
  try {
    if (request.signal.aborted) onAbort()
    const arrival = fetchArrival(core, call, flight.signal, options)
    const handOver = core.handsOver
    const answer = await (route === undefined || params === undefined ? core.unmatched(arrival, handOver) : core.answer(arrival, { route, params, handOver }))
    return respond(answer, { flight, landed, bodiless: request.method === 'HEAD', failed: (thrown) => core.report(thrown, arrival), ...options })
  } catch (thrown) {
    landed()
    throw thrown
  }
}

interface Responding extends FetchOptions {
  readonly flight: Flight
  readonly landed: () => void
  readonly bodiless: boolean
  readonly failed: (thrown: unknown) => void
}

function respond(answer: Answer, responding: Responding): Response {
  const headers = new Headers(answer.headers)
  const { body } = answer
  const length = body instanceof Uint8Array ? body.length : answer.length
  if (length !== undefined) headers.set('Content-Length', String(length))
  const init = { status: answer.status, headers }
  const free = (): void => {
    answer.release?.()
    responding.landed()
  }
  if (body !== undefined && !(body instanceof Uint8Array) && !responding.bodiless) {
    return new Response(pulledStream(body, { ...responding, signal: responding.flight.signal, abort: (reason) => responding.flight.abort(reason), free }), init)
  }
  free()
  return new Response(body instanceof Uint8Array && !responding.bodiless ? body : null, init)
}

function fetchArrival<H>(core: HttpCore<H>, call: { readonly request: Request; readonly host: H }, signal: AbortSignal, options: FetchOptions): Arrival<H> {
  const { request, host } = call
  const { path, query } = splitTarget(request.url)
  return {
    method: request.method,
    path,
    query: new URLSearchParams(query),
    headers: request.headers,
    body: fetchBody(request, signal, options),
    signal,
    requestId: core.requestId(request.headers.get('x-request-id')),
    host,
  }
}

function fetchBody(request: Request, signal: AbortSignal, options: FetchOptions): RequestBody {
  const chunks = (): AsyncIterable<Uint8Array> =>
    request.bodyUsed ? exactBytes(parsedBody(undefined, undefined)) : readStream(request.body, { signal, ...options })
  return {
    type: request.headers.get('content-type') ?? undefined,
    encoding: request.headers.get('content-encoding') ?? undefined,
    length: parseLength(request.headers.get('content-length')),
    bytes: chunks,
    values: chunks,
  }
}
