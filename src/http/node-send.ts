import { type IncomingMessage, OutgoingMessage, type ServerResponse } from 'node:http'
import { StowageError } from '../errors.ts'
import { AHEAD_ROOM_BYTES_MIN } from '../memory/answer-memory.ts'
import type { Answer } from './exchange.ts'
import { LINGER_IDLE_MS, LINGER_MS_MAX, drainedBytesMax } from './linger.ts'
import type { NodeBody } from './node-body.ts'
import { waitFor } from './timeout.ts'

/** A connection whose write failed is closed within this time. */
const CLOSING_MS = 50

export interface Sending {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly body: NodeBody
  readonly answer: Answer
  /** Called before the first header is set. */
  readonly onBeforeHeaders?: (() => void) | undefined
  readonly signal: AbortSignal
  readonly stallTimeoutMs: number
  readonly requestBytesMax: number
}

/**
 * Writes an answer and resolves when its last byte was handed to the system. Rejects when the client is gone or reads
 * nothing for too long.
 */
export async function sendAnswer(sending: Sending): Promise<void> {
  const { req, res, answer, body, onBeforeHeaders } = sending
  if (res.headersSent || res.destroyed) throw clientGone()
  onBeforeHeaders?.()
  const underWay = body.underWay
  if (underWay) closeConnection(req, res)
  setHeaders(res, answer)
  if (req.method === 'HEAD' || answer.body === undefined) return end(sending)
  if (!(answer.body instanceof Uint8Array)) return streamBody(sending, answer.body)
  if (!underWay) return end(sending, answer.body)
  return sendWhileReceiving(sending, answer.body)
}

/** An HTTP/2 stream ends on its own, and nothing may be said about the connection (RFC 9113 section 8.2.2). */
export function closeConnection(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMajor === 1) res.setHeader('Connection', 'close')
}

/** Headers that the host's own middleware set stay, except those that the response sets itself; `Vary` is merged. */
function setHeaders(res: ServerResponse, answer: Answer): void {
  res.statusCode = answer.status
  const varied = res.getHeader('Vary')
  for (const [name, value] of Object.entries(answer.headers)) res.setHeader(name, value)
  if (varied !== undefined && answer.headers.Vary !== undefined)
    res.setHeader('Vary', [varied, answer.headers.Vary].flat().join(', '))
  const length = answer.body instanceof Uint8Array ? answer.body.length : answer.length
  if (length !== undefined) res.setHeader('Content-Length', length)
}

/**
 * One buffer is on its way while the next is made: waiting for each to leave would let the connection run dry in
 * between. Only if many slow readers leave no room for more than one, the sender waits.
 */
async function streamBody(sending: Sending, body: AsyncIterable<Uint8Array>): Promise<void> {
  const { roomBytes = (): number => Infinity } = sending.answer
  sending.res.flushHeaders()
  const chunks = body[Symbol.asyncIterator]()
  try {
    let sent = await sendNext(sending, chunks)
    while (sent !== undefined) {
      if (roomBytes() < AHEAD_ROOM_BYTES_MIN) await sent.taken
      sent = await sendNext(sending, chunks, sent.taken)
    }
  } finally {
    await chunks.return?.()
  }
  await end(sending)
}

/**
 * Writes the next chunk once the one before was taken, and resolves with the promise that this one is taken; `undefined`
 * after the last. A function of its own: the frame of one that goes on would hold chunks that were sent.
 */
async function sendNext(
  sending: Sending,
  chunks: AsyncIterator<Uint8Array>,
  previous?: Promise<void>,
): Promise<{ readonly taken: Promise<void> } | undefined> {
  const { done, value } = await chunks.next()
  await previous
  if (done === true) return undefined
  const sent = isNodesOwn(sending.res) ? sending.answer.sent : undefined
  const taken = written(sending, value).then(() => sent?.(value))
  // The error is thrown where the promise is awaited; until then it must not count as unhandled.
  taken.catch(() => undefined)
  return { taken }
}

/**
 * A host can wrap the `write` of a response, and a monitoring tool that of all responses. Either may keep what is
 * written. Node's own method is the one that responses inherit from `OutgoingMessage`.
 */
function isNodesOwn(res: ServerResponse): boolean {
  return Object.is(Reflect.get(res, 'write'), Reflect.get(OutgoingMessage.prototype, 'write'))
}

/** Resolves when the system has taken the bytes. */
function written({ res, signal, stallTimeoutMs }: Sending, chunk: Uint8Array): Promise<void> {
  let settle: (error?: Error) => void = () => undefined
  const subscribe = (happened: (error?: Error) => void): (() => void) => {
    settle = happened
    const onClose = (): void => happened(clientGone())
    res.once('close', onClose)
    return () => res.off('close', onClose)
  }
  const done = waitFor(subscribe, { signal, timeoutMs: stallTimeoutMs, late: () => tooSlow(stallTimeoutMs) })
  res.write(chunk, (error) => {
    // The response closes a moment after its write failed, and then it is known that the client left.
    if (error) setTimeout(() => settle(clientGone()), CLOSING_MS)
    else settle()
  })
  return done
}

/**
 * Closing while the client sends resets the connection, and most clients then never read the response. So all of it but
 * its last byte is sent, further bytes are read and discarded within bounds, and only then does the response end and
 * the connection close.
 */
async function sendWhileReceiving(sending: Sending, bytes: Uint8Array): Promise<void> {
  const { res, body, requestBytesMax } = sending
  res.write(bytes.subarray(0, -1))
  await takeRest(body, requestBytesMax)
  await end(sending, bytes.subarray(-1))
}

/** Reads further bytes and discards them, within bounds. */
export async function takeRest(body: NodeBody, requestBytesMax: number): Promise<void> {
  const bytesReadMax = drainedBytesMax(requestBytesMax)
  const deadlineMs = performance.now() + LINGER_MS_MAX
  try {
    for await (const _ of body.rest(LINGER_IDLE_MS)) {
      if (body.bytesRead >= bytesReadMax || performance.now() >= deadlineMs) return
    }
  } catch (error) {
    if (!(error instanceof StowageError)) throw error
  }
}

/** Small answers are sent also when the work was aborted: that the service is closing, for one. */
function end({ res, stallTimeoutMs }: Sending, last?: Uint8Array): Promise<void> {
  if (res.destroyed) return Promise.reject(clientGone())
  const ended = finished(res, stallTimeoutMs)
  res.end(last)
  return ended
}

function finished(res: ServerResponse, stallTimeoutMs: number): Promise<void> {
  const subscribe = (happened: (error?: Error) => void): (() => void) => {
    const onFinish = (): void => happened()
    const onClose = (): void => happened(res.writableFinished ? undefined : clientGone())
    res.once('finish', onFinish).once('close', onClose)
    return () => res.off('finish', onFinish).off('close', onClose)
  }
  return waitFor(subscribe, { timeoutMs: stallTimeoutMs, late: () => tooSlow(stallTimeoutMs) })
}

function tooSlow(stallTimeoutMs: number): StowageError {
  return new StowageError('request_aborted', `the client read nothing for ${stallTimeoutMs} ms`)
}

function clientGone(): StowageError {
  return new StowageError('request_aborted', 'the client disconnected before the response was complete')
}
