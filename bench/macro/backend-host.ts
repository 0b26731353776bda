import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { collectDefaultMetrics, register } from 'prom-client'
import { storedAccess } from '../../src/access/token-store.ts'
import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { createObjectService, type StorageBackend } from '../../src/index.ts'
import { type RunningServer, serverOf } from '../server-process.ts'

/** The module of a backend of the user's. */
interface BackendModule {
  /** Opens the storage in a folder that is empty at first. */
  backend(options: { readonly path: string }): StorageBackend | Promise<StorageBackend>
}

/**
 * A process of its own that serves the backend of a module; for the tokens of the folder. Its thread pool has the size
 * that `stowage serve` gives to its own.
 */
export async function startBackendHost(dataFolder: string, module: string): Promise<RunningServer> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(import.meta.url), 'backend-host', dataFolder, resolve(module)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, UV_THREADPOOL_SIZE: String(availableParallelism() + 2) },
    },
  )
  return await serverOf(child)
}

async function serve(dataFolder: string, module: string): Promise<void> {
  const { backend } = (await import(pathToFileURL(module).href)) as Partial<BackendModule>
  if (backend === undefined) throw new Error(`${module} exports no function "backend" that takes { path }`)
  const opened = await backend({ path: `${dataFolder}/backend` })
  const service = createObjectService({ backend: opened, access: await storedAccess(folderCredentials(dataFolder)) })
  await service.ready()
  const server = createServer((request, response) => {
    if (request.url === '/healthz') response.end('{}')
    else service.node(request, response)
  })
  collectDefaultMetrics()
  const metrics = createServer((_, response) => {
    void register.metrics().then((text) => response.end(text))
  })
  const [url, metricsUrl] = [await listen(server), await listen(metrics)]
  process.on('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
    metrics.close()
    void service.close().then(() => process.exit(0))
  })
  console.log(JSON.stringify({ url, metricsUrl: `${metricsUrl}/metrics`, pid: process.pid }))
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === 'backend-host')
  await serve(process.argv[3], process.argv[4])
