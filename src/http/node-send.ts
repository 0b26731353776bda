import type { IncomingMessage, ServerResponse } from 'node:http'
import { StowageError } from '../errors.ts'
import { AHEAD_ROOM_BYTES_MIN } from '../memory/answer-memory.ts'
import { ChunkWriter, clientGone, tooSlow } from './chunk-writer.ts'
import type { Answer } from './exchange.ts'
import { LINGER_IDLE_MS, LINGER_MS_MAX, SHORT_REST, drainedBytesMax } from './linger.ts'
import type { NodeBody } from './node-body.ts'
import { waitFor } from './timeout.ts'

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
  if (body.underWay && req.httpVersionMajor === 1) await takeShortRest(body)
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
  const { res, signal, stallTimeoutMs } = sending
  const { roomBytes = (): number => Infinity, sent } = sending.answer
  res.flushHeaders()
  const chunks = body[Symbol.asyncIterator]()
  const writer = new ChunkWriter({ res, signal, stallTimeoutMs, sent })
  try {
    while (await sendNext(writer, chunks)) if (roomBytes() < AHEAD_ROOM_BYTES_MIN) await writer.taken
  } finally {
    writer.close()
    await chunks.return?.()
  }
  await end(sending)
}

/**
 * Writes the next chunk once the one before was taken; false after the last. A function of its own: the frame of one
 * that goes on would hold chunks that were sent.
 */
async function sendNext(writer: ChunkWriter, chunks: AsyncIterator<Uint8Array>): Promise<boolean> {
  const { done, value } = await chunks.next()
  await writer.taken
  if (done !== true) writer.write(value)
  return done !== true
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
  await discard(body, { bytesMax: drainedBytesMax(requestBytesMax), idleMs: LINGER_IDLE_MS, msMax: LINGER_MS_MAX })
}

async function takeShortRest(body: NodeBody): Promise<void> {
  const { bytesMax, msMax } = SHORT_REST
  await discard(body, { bytesMax: body.bytesRead + bytesMax, idleMs: msMax, msMax })
}

/** Stops at `bytesMax` bytes of the whole body. */
async function discard(
  body: NodeBody,
  { bytesMax, idleMs, msMax }: { readonly bytesMax: number; readonly idleMs: number; readonly msMax: number },
): Promise<void> {
  const deadlineMs = performance.now() + msMax
  try {
    for await (const _ of body.rest(idleMs)) {
      if (body.bytesRead >= bytesMax || performance.now() >= deadlineMs) return
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
