import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * The responses of a connection that wait for their turn. On the connection itself, so that it has one listener,
 * however many wait.
 */
const QUEUED: unique symbol = Symbol('stowage.queued')

type PipelinedSocket = Socket & { [QUEUED]?: Set<ServerResponse> }

/**
 * When a connection closes, Node tells only the response whose turn it is. This also closes those of pipelined requests
 * (RFC 9112 section 9.3.2) that still wait for theirs. Call the returned function when the response is over.
 */
export function closeWhileQueued(req: IncomingMessage, res: ServerResponse): () => void {
  if (res.socket !== null) return () => undefined
  const queued = queueOf(req.socket)
  queued.add(res)
  return () => void queued.delete(res)
}

function queueOf(socket: PipelinedSocket): Set<ServerResponse> {
  const known = socket[QUEUED]
  if (known !== undefined) return known
  const queued = new Set<ServerResponse>()
  socket[QUEUED] = queued
  socket.once('close', () => {
    for (const res of queued) if (res.socket === null) res.destroy().emit('close')
  })
  return queued
}
