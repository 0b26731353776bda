import type { InFlightRequest } from '../async/in-flight-requests.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { StowageError } from '../errors.ts'
import type { HttpCore, IncomingRequest, Routed } from './core.ts'
import type { Answer } from './exchange.ts'
import { NodeBody, type NodeRequest } from './node-body.ts'
import { NodeHeaders } from './node-headers.ts'
import { closeConnection, sendAnswer, takeRest } from './node-send.ts'
import { closeWhileQueued } from './pipelined.ts'
import type { MountPoint } from './router.ts'
import { splitTarget } from './target.ts'

/** Hands a request on to the host, or an error of it. */
export type Next = (error?: unknown) => void

export interface NodeOptions {
  /** How long a connection may make no progress, reading or writing, before it is cut. */
  readonly stallTimeoutMs: number
  /** Bytes a second of a body, at least, over any 20 s of waiting for them. */
  readonly bodyBytesPerSecondMin: number
  readonly requestBytesMax: number
}

/** One request as a mount hands it over. */
export interface MountedRequest<H> {
  /** The request of Node. */
  readonly req: IncomingMessage
  /** The response of Node. */
  readonly res: ServerResponse
  /** Gets paths that are not Stowage's and, with `errors: 'next'`, errors. Without it Stowage answers them. */
  readonly next?: Next
  /** The raw target, if `req.url` differs. */
  readonly url?: string
  /** The part of the target's path above the service and its own prefix. Nothing by default. */
  readonly mountPoint?: MountPoint
  /** The value that access and `onError` receive as the host's request. `req` by default. */
  readonly host?: H
  /**
   * The value that a parser of the host left of the body, if one has read it. `req.rawBody` or `req.body` by default.
   */
  readonly body?: unknown
  /** Called once, before the first header of the response is set. From then on no other code may respond. */
  readonly onBeforeHeaders?: () => void
}

/**
 * Serves one request of a Node server. Never rejects: whatever happens is answered, given to `next`, or cuts the
 * connection.
 */
export async function serveNode<H>(
  core: HttpCore<H>,
  options: NodeOptions,
  call: MountedRequest<H>,
  routed: Routed<H> | undefined,
): Promise<void> {
  const { req, res, next, onBeforeHeaders } = call
  const { stallTimeoutMs, bodyBytesPerSecondMin, requestBytesMax } = options
  const handOver = next !== undefined && core.handsOver
  const inFlightRequest = core.inFlightRequests.begin()
  const onClose = (): void => {
    // Every response closes in the end, the complete ones too.
    if (res.writableFinished) return
    inFlightRequest.abort(
      new StowageError('request_aborted', 'the client disconnected before the response was complete'),
    )
  }
  res.once('close', onClose)
  if (res.destroyed) onClose()
  const leaveQueue = closeWhileQueued(req, res)
  const { signal } = inFlightRequest
  const body = new NodeBody(req, { left: call.body, signal, stallTimeoutMs, bodyBytesPerSecondMin })
  let incoming: IncomingRequest<H> | undefined
  try {
    incoming = nodeArrival<H>(core, call, body, inFlightRequest)
    const answer = await core.answer(incoming, routed, handOver)
    await sendReleased(answer, () =>
      sendAnswer({ req, res, body, answer, onBeforeHeaders, signal, stallTimeoutMs, requestBytesMax }),
    )
  } catch (thrown) {
    if (handOver && !res.headersSent && !res.destroyed)
      next(await handedOver(thrown, { req, res, body, requestBytesMax }))
    else cutOff(core, incoming, res, thrown)
  } finally {
    res.off('close', onClose)
    leaveQueue()
    inFlightRequest.end()
  }
}

async function sendReleased(answer: Answer, send: () => Promise<void>): Promise<void> {
  try {
    await send()
  } finally {
    answer.release?.()
  }
}

/** The host's response must arrive too, so the rest of the client's bytes is read before the host is told. */
async function handedOver(
  error: unknown,
  rest: {
    readonly req: IncomingMessage
    readonly res: ServerResponse
    readonly body: NodeBody
    readonly requestBytesMax: number
  },
): Promise<unknown> {
  const { req, res, body, requestBytesMax } = rest
  if (!body.underWay) return error
  await takeRest(body, requestBytesMax)
  if (body.underWay) closeConnection(req, res)
  return error
}

/**
 * After the first byte of a body an error can only destroy the connection. A client that disconnects is not our
 * failure.
 */
function cutOff<H>(
  core: HttpCore<H>,
  incoming: IncomingRequest<H> | undefined,
  res: ServerResponse,
  thrown: unknown,
): void {
  if (incoming !== undefined) core.report(thrown, incoming)
  res.destroy()
}

function nodeArrival<H>(
  core: HttpCore<H>,
  call: MountedRequest<H>,
  body: NodeBody,
  flight: InFlightRequest,
): IncomingRequest<H> {
  const { req, host = call.req as H }: { readonly req: NodeRequest; readonly host?: H } = call
  const { query } = splitTarget(req.url ?? '/')
  const { path } = splitTarget(req.originalUrl ?? req.url ?? '/')
  const headers = new NodeHeaders(req)
  return {
    method: req.method ?? 'GET',
    path,
    isPathCut: false,
    query: new URLSearchParams(query),
    headers,
    body: body.asRequestBody(),
    signal: flight.signal,
    abort: flight.abort,
    connection: req.httpVersionMajor === 1 ? req.socket : undefined,
    requestId: core.requestId(headers.get('x-request-id')),
    host,
  }
}
