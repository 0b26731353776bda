import { type Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { onAbort } from '../../src/async/abort.ts'
import { agentFor } from './agents.ts'

const CONNECTIONS_MAX = 64
/** Of a body whose length is not announced. */
const FIRST_BYTES = 4_096
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
  /** The body of an answer that is a success and has exactly this length is read into it. */
  readonly into?: Uint8Array | undefined
  /** From the beginning of the request to the last byte of its answer. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The memory of the request, or a buffer of its own, which belongs to the caller. */
  readonly body: Uint8Array
}

/** One attempt of one request at a time, over connections that are kept. The server may be gone at any moment. */
export class HttpTransport {
  readonly #agent: Agent
  readonly #send: typeof httpRequest

  constructor(protocol: string) {
    this.#agent = agentFor(protocol, { keepAlive: true, maxSockets: CONNECTIONS_MAX, scheduling: 'lifo' })
    this.#send = protocol === 'https:' ? httpsRequest : httpRequest
  }

  /** Rejects with the signal's reason, or with an error of the connection, of which a time limit is one. */
  send(request: HttpRequest): Promise<HttpAnswer> {
    const { method, url, headers, body, timeoutMs, signal } = request
    return new Promise((resolve, reject) => {
      const outgoing = this.#send(url, { method, headers, agent: this.#agent })
      let forget = (): void => undefined
      let received: IncomingMessage | undefined
      const timer = setTimeout(() => end(timeoutError(request)), timeoutMs)
      const end = (error: Error | undefined, answer?: HttpAnswer): void => {
        clearTimeout(timer)
        forget()
        // The memory of the request is used again: nothing of it may be sent after this, and nothing read into it.
        if (error !== undefined) received?.destroy()
        if (error !== undefined || !outgoing.writableFinished) outgoing.destroy()
        if (answer === undefined) reject(error ?? new Error('the request ended without an answer'))
        else resolve(answer)
      }
      if (signal !== undefined) forget = onAbort(signal, () => end(signal.reason as Error))
      outgoing.on('error', end)
      outgoing.on('response', (incoming) => {
        received = incoming
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
async function collect(incoming: IncomingMessage, { method, answerBytesMax, into }: HttpRequest): Promise<HttpAnswer> {
  const status = incoming.statusCode ?? 0
  const isSuccess = status >= 200 && status < 300
  const { headers } = incoming
  const length = method === 'HEAD' ? 0 : Number(headers['content-length'] ?? Number.NaN)
  const announcedBytes = Number.isNaN(length) ? undefined : length
  const limitBytes = isSuccess ? answerBytesMax : ERROR_BYTES_MAX
  if (isSuccess && length > limitBytes) throw tooLong(method, length, limitBytes)
  const sizeBytes = Math.min(announcedBytes ?? FIRST_BYTES, limitBytes)
  const memory = isSuccess && into?.length === announcedBytes ? into : undefined
  const body = new Body(memory ?? Buffer.allocUnsafeSlow(sizeBytes), limitBytes, isSuccess)
  await body.readFrom(incoming)
  if (isSuccess && announcedBytes !== undefined && body.bytes.length !== announcedBytes)
    throw connectionError(`the answer ended after ${body.bytes.length} of ${announcedBytes} bytes`)
  return { status, headers, body: body.bytes }
}

/** What has arrived of a body. Chunks are taken as they come, which costs less than asking for each. */
class Body {
  readonly #limitBytes: number
  readonly #isSuccess: boolean
  #memory: Uint8Array
  #filled = 0

  constructor(memory: Uint8Array, limitBytes: number, isSuccess: boolean) {
    this.#memory = memory
    this.#limitBytes = limitBytes
    this.#isSuccess = isSuccess
  }

  get bytes(): Uint8Array {
    return this.#filled === this.#memory.length ? this.#memory : this.#memory.subarray(0, this.#filled)
  }

  readFrom(incoming: IncomingMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (error?: Error): void => {
        incoming.removeListener('data', take)
        if (error === undefined) resolve()
        else reject(error)
      }
      const take = (chunk: Buffer): void => {
        if (this.#take(chunk)) return
        end(this.#isSuccess ? tooLong('answer', this.#filled + chunk.length, this.#limitBytes) : undefined)
        incoming.destroy()
      }
      incoming.on('data', take)
      incoming.on('end', end)
      incoming.on('error', end)
      incoming.on('close', () => {
        if (!incoming.readableEnded) end(connectionError('the connection was closed before the end of the answer'))
      })
    })
  }

  /** Whether there is room for the chunk. */
  #take(chunk: Buffer): boolean {
    const neededBytes = this.#filled + chunk.length
    if (neededBytes > this.#limitBytes) return false
    if (neededBytes > this.#memory.length) {
      const larger = Math.min(this.#limitBytes, Math.max(neededBytes, this.#memory.length * 2))
      const memory = Buffer.allocUnsafeSlow(larger)
      memory.set(this.#memory.subarray(0, this.#filled))
      this.#memory = memory
    }
    this.#memory.set(chunk, this.#filled)
    this.#filled = neededBytes
    return true
  }
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
