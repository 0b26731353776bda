import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { storedAccess } from '../../src/access/token-store.ts'
import { createObjectService } from '../../src/index.ts'

/* The control of the tests of durability: serves a data folder as the command does, but acknowledges before anything is synced. */

const [storage, path] = process.argv.slice(2)
const backend =
  storage === 'level' ? levelBackend({ path, unsafeNoSync: true }) : filesystemBackend({ path, unsafeNoSync: true })
const service = createObjectService({ backend, access: await storedAccess(folderCredentials(path)) })
await service.ready()
const server = createServer(service.node)
server.listen(0, '127.0.0.1', () =>
  console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })),
)
