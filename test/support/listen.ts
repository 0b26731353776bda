import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Ending } from './folder.ts'

export interface Listening {
  readonly url: string
  readonly port: number
}

/** Listens on a free port of this machine until the test ends. */
export async function listenUntilEnd(ending: Ending, server: Server): Promise<Listening> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ending.after(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port }
}
