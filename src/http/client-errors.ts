import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { StowageError } from '../errors.ts'
import { errorAnswer } from './error-answer.ts'
import type { Answer } from './exchange.ts'
import { CLOSE_DELAY_MS } from './linger.ts'

interface Underway {
  readonly req: IncomingMessage
  readonly res: ServerResponse
}

type ParserError = Error & { readonly code?: string }

/**
 * Answers requests that Node refuses before any listener sees them, in the shape of all errors: invalid HTTP (400), a
 * request without `Host` (400), headers that do not arrive (408), an unknown expectation (417), and headers that are
 * too large (431). Node alone sends these responses without a body, and drops a response under way when invalid bytes
 * follow its request. With this function the response arrives whole, and the bytes are refused after it. Call it once
 * for a server, before it listens.
 */
export function answerClientErrors(server: Server | TlsServer): void {
  const underway = new WeakMap<Duplex, Set<Underway>>()
  const refused = new WeakSet<Duplex>()
  // Otherwise Node itself answers a missing Host. The requests are refused here, before any other listener.
  ;(server as { requireHostHeader?: boolean }).requireHostHeader = false
  const emit = server.emit.bind(server) as (event: string | symbol, ...args: unknown[]) => boolean
  server.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event !== 'request' && event !== 'checkContinue' && event !== 'checkExpectation') return emit(event, ...args)
    const [req, res] = args as [IncomingMessage, ServerResponse]
    note(underway, req, res)
    if (!lacksHost(req)) return emit(event, ...args)
    answer(res, new StowageError('invalid_request', 'the header Host is missing; HTTP/1.1 requires it'))
    return true
  }
  server.on('checkExpectation', (_req: IncomingMessage, res: ServerResponse) =>
    answer(res, new StowageError('expectation_failed', 'the only supported expectation is 100-continue')),
  )
  server.on('clientError', (error: ParserError, socket: Duplex) => {
    if (refused.has(socket)) return
    refused.add(socket)
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy(error)
    else void refuse(socket, refusalOf(error), underway.get(socket) ?? new Set())
  })
}

function note(underway: WeakMap<Duplex, Set<Underway>>, req: IncomingMessage, res: ServerResponse): void {
  const { socket } = req
  const all = underway.get(socket) ?? new Set()
  for (const known of all) if (known.res === res) return
  const one = { req, res }
  underway.set(socket, all.add(one))
  res.once('close', () => all.delete(one))
}

function lacksHost({ headers, httpVersionMajor, httpVersionMinor }: IncomingMessage): boolean {
  return httpVersionMajor === 1 && httpVersionMinor >= 1 && headers.host === undefined
}

function refusalOf({ code = '' }: ParserError): StowageError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new StowageError('headers_too_large', 'the headers of the request exceed the limit of this server')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new StowageError('request_too_large', 'the chunk extensions of the body exceed the limit of this server')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new StowageError('request_timeout', 'the request was not complete within the time limit')
    default:
      return new StowageError('invalid_request', 'the bytes on this connection are not HTTP')
  }
}

/** After the complete responses to the earlier requests. */
async function refuse(socket: Duplex, error: StowageError, underway: ReadonlySet<Underway>): Promise<void> {
  for (const { req, res } of underway) {
    // A body that broke off can only be answered by this, unless its answer is on its way already.
    if (req.complete || res.headersSent) await new Promise<void>((resolve) => res.once('close', resolve))
  }
  if (!socket.writable) return void socket.destroy()
  socket.end(textOf(error))
  // Bytes that still arrive are read and discarded meanwhile, since closing at once would take the response back.
  setTimeout(() => socket.destroy(), CLOSE_DELAY_MS).unref()
}

function headersOf({ headers, body }: Answer): Readonly<Record<string, string | number>> {
  const length = (body as Uint8Array).length
  return { ...headers, 'X-Content-Type-Options': 'nosniff', 'Content-Length': length, Connection: 'close' }
}

function textOf(error: StowageError): string {
  const refusal = errorAnswer(error)
  const lines = Object.entries(headersOf(refusal)).map(([name, value]) => `${name}: ${value}\r\n`)
  const { status, body } = refusal
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${Buffer.from(body as Uint8Array).toString('utf8')}`
}

function answer(res: ServerResponse, error: StowageError): void {
  const refusal = errorAnswer(error)
  res.writeHead(refusal.status, headersOf(refusal)).end(refusal.body)
}
