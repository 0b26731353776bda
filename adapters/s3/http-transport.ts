import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { onAbort } from '../../src/async/abort.ts'

const CONNECTIONS_MAX = 64
/** Error documents are small; what is longer is cut off. */
const ERROR_BYTES_MAX = 65_536

export interface HttpRequest {
  readonly method: string
  readonly url: URL
  readonly headers: OutgoingHttpHeaders
  /** Unchanged until the call settles. */
  readonly body: readonly Uint8Array[]
  /** A longer body of an answer that is a success is an error. */
  readonly answerBytesMax: number
  /** From the beginning of the request to the last byte of its answer. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** A buffer of its own, which belongs to the caller. */
  readonly body: Uint8Array
}

/** One attempt of one request at a time, over connections that are kept. The server may be gone at any moment. */
export class HttpTransport {
  readonly #agent: HttpAgent
  readonly #send: typeof httpRequest

  constructor(protocol: string) {
    const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX, scheduling: 'lifo' } as const
    this.#agent = protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options)
    this.#send = protocol === 'https:' ? httpsRequest : httpRequest
  }

  /** Rejects with the signal's reason, or with an error of the connection, of which a time limit is one. */
  send(request: HttpRequest): Promise<HttpAnswer> {
    const { method, url, headers, body, timeoutMs, signal } = request
    return new Promise((resolve, reject) => {
      const outgoing = this.#send(url, { method, headers, agent: this.#agent })
      let forget = (): void => undefined
      const timer = setTimeout(() => end(timeoutError(request)), timeoutMs)
      const end = (error: Error | undefined, answer?: HttpAnswer): void => {
        clearTimeout(timer)
        forget()
        // The body's buffers are used again: nothing of them may be sent after this.
        if (error !== undefined || !outgoing.writableFinished) outgoing.destroy()
        if (answer === undefined) reject(error ?? new Error('the request ended without an answer'))
        else resolve(answer)
      }
      if (signal !== undefined) forget = onAbort(signal, () => end(signal.reason as Error))
      outgoing.on('error', end)
      outgoing.on('response', (incoming) => {
        collect(incoming, request).then((answer) => end(undefined, answer), end)
      })
      writeBody(outgoing, body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function writeBody(outgoing: ClientRequest, body: readonly Uint8Array[]): void {
  for (const part of body) outgoing.write(part)
  outgoing.end()
}

/** A body that is shorter than its length says is an error of the connection. */
async function collect(incoming: IncomingMessage, { method, answerBytesMax }: HttpRequest): Promise<HttpAnswer> {
  const status = incoming.statusCode ?? 0
  const isSuccess = status >= 200 && status < 300
  const { headers } = incoming
  const announcedBytes = method === 'HEAD' ? 0 : Number(headers['content-length'] ?? Number.NaN)
  const limitBytes = isSuccess ? answerBytesMax : ERROR_BYTES_MAX
  if (isSuccess && announcedBytes > limitBytes) throw tooLong(method, announcedBytes, limitBytes)
  const body = await bodyOf(incoming, Number.isNaN(announcedBytes) ? undefined : announcedBytes, limitBytes, isSuccess)
  return { status, headers, body }
}

async function bodyOf(
  incoming: IncomingMessage,
  announcedBytes: number | undefined,
  limitBytes: number,
  isSuccess: boolean,
): Promise<Uint8Array> {
  let buffer = Buffer.allocUnsafeSlow(Math.min(announcedBytes ?? 4_096, limitBytes))
  let filled = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    const needed = filled + chunk.length
    if (needed > limitBytes) {
      if (isSuccess) throw tooLong('answer', needed, limitBytes)
      break
    }
    if (needed > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(limitBytes, Math.max(needed, buffer.length * 2)))
      buffer.copy(larger, 0, 0, filled)
      buffer = larger
    }
    buffer.set(chunk, filled)
    filled = needed
  }
  if (isSuccess && announcedBytes !== undefined && filled !== announcedBytes)
    throw connectionError(`the answer ended after ${filled} of ${announcedBytes} bytes`)
  return buffer.subarray(0, filled)
}

function tooLong(what: string, bytes: number, limitBytes: number): Error {
  return connectionError(`the ${what} has ${bytes} bytes; at most ${limitBytes} were expected`)
}

function connectionError(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNRESET' })
}

function timeoutError({ method, url, timeoutMs }: HttpRequest): Error {
  const message = `${method} ${url.host}${url.pathname} had no complete answer after ${timeoutMs} ms`
  return Object.assign(new Error(message), { code: 'ETIMEDOUT' })
}
