import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Ending } from '../support/folder.ts'
import { type Listening, listenUntilEnd } from '../support/listen.ts'

/** What happens to one request on its way to an engine. */
export interface Fault {
  /** After half of the request: the engine never sees all of it. */
  readonly midway?: () => Promise<void>
  /** The engine has answered, and nobody learns it. */
  readonly answered?: () => Promise<void>
  /** So much later than it is by the clock of the answer, which arrives. */
  readonly laterMs?: number
}

/**
 * Stands before an engine on this machine. `faultOf` decides for each request;
 * a request with a fault loses its connection, unless the fault says otherwise.
 */
export function faultyProxy(
  ending: Ending,
  port: number,
  faultOf: (request: IncomingMessage) => Fault | undefined,
): Promise<Listening> {
  const server = createServer((incoming, outgoing) => {
    const fault = faultOf(incoming)
    pass(incoming, outgoing, port, fault).catch(() => outgoing.destroy())
  })
  return listenUntilEnd(ending, server)
}

async function pass(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  port: number,
  fault: Fault | undefined,
): Promise<void> {
  const body = await buffer(incoming)
  const { method, url: path, headers } = incoming
  const forwarded = request({ host: '127.0.0.1', port, method, path, headers, agent: false })
  const answering = new Promise<IncomingMessage>((resolve, reject) => {
    forwarded.on('response', resolve).on('error', reject)
  })
  answering.catch(() => undefined)
  if (fault?.midway !== undefined) {
    forwarded.write(body.subarray(0, body.length >> 1))
    await fault.midway()
    forwarded.destroy()
    outgoing.destroy()
    return
  }
  forwarded.end(body)
  const answer = await answering
  const answerBody = await buffer(answer)
  if (fault?.answered !== undefined) {
    await fault.answered()
    outgoing.destroy()
    return
  }
  const { headers: answered } = answer
  if (fault?.laterMs !== undefined)
    answered.date = new Date(Date.parse(answered.date ?? '') + fault.laterMs).toUTCString()
  outgoing.writeHead(answer.statusCode ?? 500, answered)
  outgoing.end(answerBody)
}
