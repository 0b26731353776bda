import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'

/** A request as a client puts it on the wire. */
export interface Recorded {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /**
   * Header lines in the client's order and spelling. `Host`, and `Content-Length` unless the body is chunked, are
   * added, and nothing else.
   */
  readonly headers: readonly string[]
  /** Several pieces go out as one chunk each, if the headers say that it is chunked. */
  readonly body?: readonly (Uint8Array | string)[]
}

export interface Replayed {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** Sends exactly these headers and this body. */
export async function replay(port: number, { method, path, headers, body = [] }: Recorded): Promise<Replayed> {
  const chunked = headers.includes('Transfer-Encoding: chunked')
  const length = body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
  const lines = [
    `Host: 127.0.0.1:${port}`,
    ...headers,
    ...(chunked || body.length === 0 ? [] : [`Content-Length: ${length}`]),
  ]
  const pairs = lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
  const options = {
    host: '127.0.0.1',
    port,
    method,
    path,
    headers: pairs,
    setDefaultHeaders: false,
    agent: false as const,
  }
  const sent = request(options)
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>
  for (const piece of body) sent.write(piece)
  sent.end()
  const [response] = await answered
  const bytes = await buffer(response)
  const text = (response.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()
  return { status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', text }
}

/** The lines `<id> TAB <json>`, split at the first tab as these clients do, without lines that begin with a colon. */
export function linesOf({ status, text }: Replayed): Map<string, string> {
  if (status !== 200 || (text !== '' && !text.endsWith('\n'))) throw new Error(`${status}: ${text.slice(0, 500)}`)
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith(':'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('\t')), line.slice(line.indexOf('\t') + 1)]))
}

/** Lists in pieces of at most so many. */
export function inPieces<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size))
}

/** Does the same for all items, so many at a time. */
export async function someAtATime<T, R>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const waiting = items.entries()
  const worker = async (): Promise<void> => {
    for (const [index, item] of waiting) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return results
}
