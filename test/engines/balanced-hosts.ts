import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { continueOnExpect, type ObjectService } from '../../src/index.ts'
import type { Ending } from '../support/folder.ts'
import { noteCall } from '../support/several-servers.ts'
import { startBalancer } from './cluster.ts'

/** Longer than nginx keeps an idle connection: otherwise it may send a request on one that is just being closed. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000

/** Wraps a service in a server. */
export type OpenHost = (service: ObjectService) => Promise<Server>

/** A server on a free port of this machine, and its end. */
export interface OpenedHost {
  readonly url: string
  readonly close: () => Promise<void>
}

/** One service in one server. */
export async function startHost(service: ObjectService, open: OpenHost): Promise<OpenedHost> {
  const server = await open(service)
  continueOnExpect(server, service)
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await service.close({ graceMs: 0 })
    },
  }
}

/** Services over one place, each in a server of its own, behind nginx, which sends each request to the next one. */
export async function startBalancedHosts(services: readonly ObjectService[], open: OpenHost): Promise<OpenedHost> {
  const endings: (() => void | Promise<void>)[] = []
  const ending: Ending = { after: (end) => void endings.unshift(end) }
  const servers: OpenedHost[] = []
  for (const [at, service] of services.entries()) {
    const host = await startHost(service, async (opened) =>
      (await open(opened)).on('request', () => {
        noteCall(at)
      }),
    )
    ending.after(host.close)
    servers.push(host)
  }
  const url = await startBalancer(ending, { servers })
  return {
    url,
    close: async () => {
      for (const end of endings) await end()
    },
  }
}
