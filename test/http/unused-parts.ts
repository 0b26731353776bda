import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { memoryBackend } from '../../adapters/memory/index.ts'

/*
 * A process of its own: a service with automations and pages that answers an upload and a download through Node's own
 * HTTP. Prints both statuses, then the large parts of Node that it made Node load. Since Node 22, `fetch` is loaded with
 * the import of `node:http`, whoever imports it.
 */
const used = new Set<string>()
const isFetchLoaded = (): boolean => moduleLoadList.some((module) => module.includes('deps/undici/'))
const { moduleLoadList } = process as unknown as { readonly moduleLoadList: readonly string[] }
const isLoadedByNode = isFetchLoaded()
const intl = globalThis.Intl
globalThis.Intl = new Proxy(intl, {
  get: (all, name: keyof typeof Intl) => {
    used.add(`Intl.${name}`)
    return all[name]
  },
})
const { automation } = await import('../../src/automation-server/index.ts')
const { createObjectService, openAccess } = await import('../../src/index.ts')
const { pages } = await import('../../src/pages/index.ts')

const auto = automation()
const service = createObjectService({
  backend: memoryBackend(),
  access: openAccess(),
  extensions: [auto, pages({ automation: auto })],
})
const server = createServer(service.node)
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

async function statusOf(method: string, path: string, body?: string): Promise<number | undefined> {
  const asked = request({ port, host: '127.0.0.1', method, path, headers: { 'Content-Type': 'application/json' } })
  asked.end(body)
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  await text(answer)
  return answer.statusCode
}

const id = 'a'.repeat(32)
const statuses = [
  await statusOf('POST', '/objects/demo', JSON.stringify([{ id, name: 'x' }])),
  await statusOf('GET', `/objects/demo/${id}`),
]
if (isFetchLoaded() && !isLoadedByNode) used.add('fetch')
process.stdout.write(`${statuses.join(' ')} ${[...used].join(' ')}`.trim())
server.close()
await service.close({ graceMs: 0 })
