import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { filesystemBackend } from '../../adapters/filesystem.ts'
import { automation, type AutomationOptions, secretKeyFromFolder } from '../../src/automation-server/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { FUNCTIONS } from './functions/registered.ts'

/** What the host is told as JSON, as its only parameter. */
export interface HostSettings extends Pick<
  AutomationOptions,
  'leaseMs' | 'sweepIntervalMs' | 'runMsMax' | 'concurrency' | 'attemptsMax'
> {
  readonly folder: string
  /** Any free one by default. */
  readonly port?: number
}

/* A server with functions of both kinds: prints its port, closes at SIGTERM, and tells uncaught errors as any program does. */

const { folder, port = 0, ...times } = JSON.parse(process.argv[2]) as HostSettings
let serverUrl = ''
const extension = automation({
  ...times,
  functions: FUNCTIONS,
  secretKeys: [await secretKeyFromFolder(folder)],
  serverUrl: () => serverUrl,
})
const service = createObjectService({
  backend: filesystemBackend({ path: folder }),
  access: openAccess(),
  extensions: [extension],
})
const server = createServer((req, res) => service.node(req, res))
server.listen(port, '127.0.0.1', () => {
  serverUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  void service.ready().then(() => process.stdout.write(`${serverUrl}\n`))
})
process.once('SIGTERM', () => {
  void service.close({ graceMs: 30_000 }).then(() => {
    server.closeAllConnections()
    server.close()
  })
})
