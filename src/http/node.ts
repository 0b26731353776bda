import type { IncomingMessage, ServerResponse } from 'node:http'
import { StowageError } from '../errors.ts'
import type { Arrival, HttpCore } from './core.ts'
import type { Answer } from './exchange.ts'
import { NodeBody, type NodeRequest } from './node-body.ts'
import { sendAnswer } from './node-send.ts'
import { closeWhileQueued } from './pipelined.ts'
import type { Params, Route } from './router.ts'
import { splitTarget } from './target.ts'

export type Next = (error?: unknown) => void

export interface NodeOptions {
  /** How long a connection may make no progress, reading or writing, before it is cut. */
  readonly stallTimeoutMs: number
  readonly requestBytesMax: number
}

export interface NodeCall {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly next?: Next
  /** Both absent for a path that no route has. */
  readonly route?: Route
  readonly params?: () => Params
}

/** Serves one request of a Node server. Never rejects: whatever happens is answered, given to `next`, or cuts the connection. */
export async function serveNode<H>(core: HttpCore<H>, options: NodeOptions, call: NodeCall): Promise<void> {
  const { req, res, next, route, params } = call
  const handOver = next !== undefined && core.handsOver
  const flight = core.flights.begin()
  const onClose = (): void => flight.abort(new StowageError('request_aborted', 'the client went away before the answer was complete'))
  res.once('close', onClose)
  const leaveQueue = closeWhileQueued(req, res)
  const body = new NodeBody(req, { signal: flight.signal, stallTimeoutMs: options.stallTimeoutMs })
  let arrival: Arrival<H> | undefined
  try {
    arrival = nodeArrival<H>(core, req, body, flight.signal)
    const answer = await (route === undefined || params === undefined ? core.unmatched(arrival, handOver) : core.answer(arrival, { route, params, handOver }))
    await sendReleased(answer, () => sendAnswer({ req, res, body, answer, signal: flight.signal, ...options }))
  } catch (thrown) {
    if (handOver && !res.headersSent && !res.destroyed) next(thrown)
    else cutOff(core, arrival, res, thrown)
  } finally {
    res.off('close', onClose)
    leaveQueue()
    flight.end()
  }
}

async function sendReleased(answer: Answer, send: () => Promise<void>): Promise<void> {
  try {
    await send()
  } finally {
    answer.release?.()
  }
}

/** After the first byte of a body an error can only destroy the connection. That the client left is no failure of ours. */
function cutOff<H>(core: HttpCore<H>, arrival: Arrival<H> | undefined, res: ServerResponse, thrown: unknown): void {
  if (arrival !== undefined) core.report(thrown, arrival)
  res.destroy()
}

function nodeArrival<H>(core: HttpCore<H>, req: NodeRequest, body: NodeBody, signal: AbortSignal): Arrival<H> {
  const { path, query } = splitTarget(req.url ?? '/')
  const headers = nodeHeaders(req)
  return {
    method: req.method ?? 'GET',
    path,
    query: new URLSearchParams(query),
    headers,
    body: body.asRequestBody(),
    signal,
    requestId: core.requestId(headers.get('x-request-id')),
    host: req as H,
  }
}

function nodeHeaders(req: IncomingMessage): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(req.headers)) {
    if (value === undefined || name.startsWith(':')) continue
    for (const one of typeof value === 'string' ? [value] : value) headers.append(name, one)
  }
  return headers
}
