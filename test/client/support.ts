import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { type ClientOptions, createClient, type Fetch, type ObjectText, type Project } from '../../src/client/index.ts'
import type { ObjectService } from '../../src/index.ts'
import { served, type ServedOptions } from '../http/served.ts'
import { eventually } from '../support/patience.ts'

export interface Fixture {
  readonly service: ObjectService
  readonly url: string
  readonly port: number
  readonly project: Project
  /** Another client of the same project. */
  readonly withOptions: (options: Partial<ClientOptions>) => Project
}

/** Waits that are too short to be noticed. */
export const QUICK: NonNullable<ClientOptions['retry']> = { delayMs: 1, delayMsMax: 5 }

/** A service on a port of its own, and a client of it. */
export async function serviceAndClient(t: TestContext, options: ServedOptions = {}): Promise<Fixture> {
  const { url, port, service } = await served(t, options)
  const withOptions = (more: Partial<ClientOptions>): Project =>
    createClient({ url, token: undefined, retry: QUICK, ...more }).project('demo')
  return { url, port, service, project: withOptions({}), withOptions }
}

/** Waits until a graph has its plan, without which no answer can be continued. */
export function planned({ url }: Pick<Fixture, 'url'>, rootId: string): Promise<void> {
  return eventually(
    async () => (await fetch(`${url}/objects/demo/${rootId}?archive=gzip`, { method: 'HEAD' })).headers.has('etag'),
    `the graph of ${rootId} has a plan`,
  )
}

export async function collect<T>(batches: AsyncIterable<readonly T[]>): Promise<T[]> {
  const all: T[] = []
  for await (const batch of batches) all.push(...batch)
  return all
}

export function idsOf(objects: readonly { readonly id: string }[]): string[] {
  return objects.map(({ id }) => id)
}

/** Texts by their ids; fails when an id comes twice. */
export function byId(texts: readonly ObjectText[]): Map<string, string> {
  const map = new Map(texts.map(({ id, json }) => [id, json]))
  if (map.size !== texts.length) throw new Error(`${texts.length - map.size} objects came twice`)
  return map
}

export interface BreakingProxy {
  readonly url: string
  /** Connections so far. */
  readonly connections: () => number
}

/**
 * Passes everything on, and breaks each connection once so many bytes came back over it. `onBreak` happens before the
 * client can notice.
 */
export async function breakingProxy(
  t: TestContext,
  port: number,
  bytesUntilBreak: number,
  onBreak: (count: number) => Promise<void> = async () => {},
): Promise<BreakingProxy> {
  let connections = 0
  let breaks = 0
  const breakOff = async (client: Socket): Promise<void> => {
    await onBreak(++breaks)
    client.resetAndDestroy()
  }
  const server = createServer((client) => {
    connections += 1
    let bytes = 0
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) socket.on('error', () => undefined)
    client.on('close', () => upstream.destroy()).pipe(upstream)
    upstream.on('end', () => client.end())
    upstream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      const isOver = bytes >= bytesUntilBreak
      client.write(
        chunk.subarray(0, Math.min(chunk.length, chunk.length - (bytes - bytesUntilBreak))),
        () => void (isOver && breakOff(client)),
      )
      if (isOver) upstream.pause()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections }
}

/** A project of a client whose requests go to this function. */
export function projectOver(fetchOne: Fetch, options: Partial<ClientOptions> = {}): Project {
  return createClient({
    url: 'http://in.process',
    token: undefined,
    retry: QUICK,
    fetch: fetchOne,
    ...options,
  }).project('demo')
}
