import { createServer, request } from 'node:http'
import type { TestContext } from 'node:test'
import { listenUntilEnd } from '../support/listen.ts'

/** The paths of the contract for reading, and of no other interface. */
const PATHS = [
  /^GET \/objects\/[^/]+\/[^/]+(?:\/single)?$/,
  /^POST \/api\/(?:getobjects|diff)\/[^/]+$/,
  /^POST \/objects\/[^/]+$/,
]
/** What the contract knows of a request's headers, and what it takes to send one. */
const SENT = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'content-encoding',
  'content-type',
  'content-length',
])
const ANSWERED = new Set(['content-encoding', 'content-type'])

/**
 * A server that offers nothing but the contract: another Stowage, less everything that the contract does not have.
 * Tells what was asked.
 */
export async function contractOnly(
  t: TestContext,
  target: string,
): Promise<{ readonly url: string; readonly asked: readonly string[] }> {
  const asked: string[] = []
  const server = createServer((req, res) => {
    const [path] = (req.url ?? '/').split('?')
    asked.push(`${req.method} ${path}`)
    if (!PATHS.some((pattern) => pattern.test(`${req.method} ${path}`))) {
      res.writeHead(404).end()
      return
    }
    const headers = Object.fromEntries(Object.entries(req.headers).filter(([name]) => SENT.has(name)))
    const onward = request(new URL(path, target), { method: req.method, headers }, (answer) => {
      const kept = Object.entries(answer.headers).filter(([name]) => ANSWERED.has(name))
      res.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept))
      answer.pipe(res)
    })
    onward.once('error', () => res.destroy())
    req.pipe(onward)
  })
  const { url } = await listenUntilEnd(t, server)
  return { url, asked }
}
