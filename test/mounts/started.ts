import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { ObjectService } from '../../src/index.ts'

interface Example {
  readonly service: ObjectService<never>
  readonly server: Server
}

export interface StartedExample {
  readonly url: string
  readonly service: ObjectService<never>
}

export const KEY: Buffer = randomBytes(32)

/** The examples are programs: they begin when they are imported. Data and server end with the test. */
export async function started(t: TestContext, load: () => Promise<unknown>): Promise<StartedExample> {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-example-'))
  Object.assign(process.env, { PORT: '0', DATA: folder, TOKEN_KEY: KEY.toString('hex') })
  const { server, service } = (await load()) as Example
  if (!server.listening) await once(server, 'listening')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
    await service.close({ graceMs: 0 })
    await rm(folder, { recursive: true })
  })
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, service }
}
