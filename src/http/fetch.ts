import { StowageError } from '../errors.ts'
import type { HttpCore, IncomingRequest, Routed } from './core.ts'
import type { Answer } from './exchange.ts'
import type { InFlightRequest } from '../async/in-flight-requests.ts'
import { splitTarget } from './target.ts'
import { WebBody } from './web-body.ts'
import { pulledStream } from './web-streams.ts'

export interface FetchOptions {
  /** How long a body may make no progress, reading or writing, before it is given up. */
  readonly stallTimeoutMs: number
  /** Bytes a second of a body, at least, over any 20 s of waiting for them. */
  readonly bodyBytesPerSecondMin: number
  readonly requestBytesMax: number
}

/** Serves one fetch-style request. Rejects only when the host wants errors, and then with a `StowageError`. */
export async function serveFetch<H>(
  core: HttpCore<H>,
  options: FetchOptions,
  call: { readonly request: Request; readonly host: H },
  routed: Routed<H> | undefined,
): Promise<Response> {
  const { request } = call
  const inFlightRequest = core.inFlightRequests.begin()
  const abort = (): void =>
    inFlightRequest.abort(
      new StowageError('request_aborted', 'the client disconnected before the response was complete'),
    )
  // A host that cancels the response's body as well may come first: it would take an error of the body for a failure.
  const onAbort = (): void => void setImmediate(abort)
  request.signal.addEventListener('abort', onAbort)
  const body = new WebBody(request, { signal: inFlightRequest.signal, ...options })
  const landed = (): void => {
    request.signal.removeEventListener('abort', onAbort)
    inFlightRequest.end()
  }
  try {
    if (request.signal.aborted) abort()
    const incoming = fetchArrival(core, call, body, inFlightRequest)
    const handOver = core.handsOver
    const answer = await core.answer(incoming, routed, handOver)
    if (answer.status >= 400) await body.takeRest()
    return respond(answer, {
      inFlightRequest,
      landed,
      bodiless: request.method === 'HEAD',
      failed: (thrown) => core.report(thrown, incoming),
      ...options,
    })
  } catch (thrown) {
    await body.takeRest().finally(landed)
    throw thrown
  }
}

interface Responding extends FetchOptions {
  readonly inFlightRequest: InFlightRequest
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
    return new Response(
      pulledStream(body, {
        ...responding,
        signal: responding.inFlightRequest.signal,
        abort: (reason) => responding.inFlightRequest.abort(reason),
        free,
        sent: answer.sent,
      }),
      init,
    )
  }
  free()
  return new Response(body instanceof Uint8Array && !responding.bodiless ? body : null, init)
}

function fetchArrival<H>(
  core: HttpCore<H>,
  call: { readonly request: Request; readonly host: H },
  body: WebBody,
  flight: InFlightRequest,
): IncomingRequest<H> {
  const { request, host } = call
  const { path, query } = splitTarget(request.url)
  return {
    method: request.method,
    path,
    isPathCut: true,
    query: new URLSearchParams(query),
    headers: request.headers,
    body: body.asRequestBody(),
    signal: flight.signal,
    abort: flight.abort,
    requestId: core.requestId(request.headers.get('x-request-id')),
    host,
  }
}
