import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  type CommonServiceOptions,
  continueOnExpect,
  createObjectService,
  type ObjectService,
  openAccess,
  type ServiceStorage,
} from '../../src/index.ts'

export type ServedOptions = Partial<ServiceStorage & CommonServiceOptions<unknown>>

export interface Served {
  readonly url: string
  readonly port: number
  readonly service: ObjectService
  readonly server: Server
}

/** A service over a backend in memory, open to everybody unless told otherwise. */
export function openService(options: ServedOptions = {}): ObjectService {
  const storage: ServiceStorage =
    'store' in options || 'backend' in options ? (options as ServiceStorage) : { backend: memoryBackend() }
  return createObjectService({ access: openAccess(), ...options, ...storage })
}

/** The same behind a port of this machine; both end with the test. */
export function served(t: TestContext, options: ServedOptions = {}): Promise<Served> {
  return behindPort(t, openService(options))
}

/** With `prepare`, each response passes it before the service receives it. */
export async function behindPort(
  t: TestContext,
  service: ObjectService,
  prepare: (res: ServerResponse) => void = () => undefined,
): Promise<Served> {
  const server = createServer((req, res) => {
    prepare(res)
    service.node(req, res)
  })
  continueOnExpect(server, service)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await service.close({ graceMs: 0 })
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, service, server }
}

/** A handler of requests: either core of a service, so that one test tells the same of both. */
export type Ask = (path: string, init?: RequestInit) => Promise<Response>

export async function bothCores(
  t: TestContext,
  options: () => ServedOptions = () => ({}),
): Promise<readonly (readonly [string, Ask])[]> {
  const { url } = await served(t, options())
  const service = openService(options())
  t.after(() => service.close({ graceMs: 0 }))
  return [
    ['node', (path, init) => fetch(`${url}${path}`, init)],
    ['fetch', (path, init) => service.fetch(new Request(`http://in.process${path}`, init))],
  ]
}

export function jsonUpload(objects: readonly unknown[]): RequestInit {
  return { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(objects) }
}

export function idList(ids: readonly string[], member: 'objects' | 'objectIds' = 'objects'): RequestInit {
  return { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ [member]: ids }) }
}

/** Writes these pieces as they are and resolves with everything that came until the connection ended. */
export async function rawExchange(port: number, pieces: Iterable<string | Uint8Array>): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  let open = true
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const drained = (): Promise<void> => new Promise((resolve) => socket.once('drain', () => resolve()))
  socket.setEncoding('latin1').on('data', (text: string) => (answer += text))
  socket.on('error', () => undefined)
  socket.once('close', () => (open = false))
  for (const piece of pieces) {
    if (!open) break
    if (!socket.write(piece)) await Promise.race([drained(), closed])
  }
  await closed
  return answer
}

export async function errorOf(response: Response): Promise<{ status: number; code: string; message: string }> {
  const { message, statusCode, code } = (await response.json()) as { message: string; statusCode: number; code: string }
  if (statusCode !== response.status)
    throw new Error(`statusCode ${statusCode} in an answer with status ${response.status}`)
  return { status: statusCode, code, message }
}
