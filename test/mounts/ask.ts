import { request } from 'node:http'

/** A request as it goes over the wire: nothing is normalized. */
export interface Sent {
  readonly method?: string
  /** Below the prefix. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
}

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Headers that say how the connection goes on, and who serves. */
const OF_THE_HOST: ReadonlySet<string> = new Set([
  'date',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'x-powered-by',
])

/** Asks over a connection of its own. The body comes as Latin-1, one character a byte. */
export function ask(port: number, sent: Sent, prefix: string = ''): Promise<Answered> {
  const { method = 'GET', path, headers = {}, body } = sent
  return new Promise((resolve, reject) => {
    const length: Record<string, string> =
      body === undefined || 'transfer-encoding' in headers ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const req = request({
      host: '127.0.0.1',
      port,
      agent: false,
      method,
      path: `${prefix}${path}`,
      headers: { 'x-request-id': 'the-same', ...length, ...headers },
    })
    req.on('error', reject)
    req.on('response', (res) => {
      const chunks: Buffer[] = []
      res.on('error', reject)
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('end', () =>
        resolve({
          status: res.statusCode ?? 0,
          headers: describing(Object.entries(res.headers)),
          body: Buffer.concat(chunks).toString('latin1'),
        }),
      )
    })
    req.end(body)
  })
}

/** The headers that describe an answer, in one order. */
export function describing(
  headers: Iterable<readonly [string, string | readonly string[] | undefined]>,
): Record<string, string> {
  const kept = [...headers]
    .map(([name, value]) => [name.toLowerCase(), String(value)])
    .filter(([name]) => !OF_THE_HOST.has(name))
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1))) as Record<string, string>
}
