import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import {
  automation,
  type AutomationOptions,
  type CommandFunction,
  storedSecretKeys,
} from '../../src/automation-server/index.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { FUNCTIONS } from './functions/registered.ts'

/** What the host is told as JSON, as its only parameter. */
export interface HostSettings extends Pick<
  AutomationOptions,
  'isolation' | 'leaseMs' | 'sweepIntervalMs' | 'runMsMax' | 'concurrency' | 'attemptsMax'
> {
  readonly folder: string
  /** Beside those of `functions/registered.ts`. */
  readonly functions?: readonly CommandFunction[]
  /** Any free one by default. */
  readonly port?: number
}

/* A server with functions of both kinds: prints its port, closes at SIGTERM, and tells uncaught errors as any program does. */

const { folder, port = 0, functions = [], ...settings } = JSON.parse(process.argv[2]) as HostSettings
let serverUrl = ''
const extension = automation({
  ...settings,
  hiddenPaths: [folder],
  processFolder: join(folder, 'processes'),
  functions: [...FUNCTIONS, ...functions],
  secretKeys: storedSecretKeys(folderCredentials(folder)),
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
