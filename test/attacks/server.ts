import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { claimAuthorize, createObjectService, ALL_PROJECTS, type Principal } from '../../src/index.ts'
import type { AttackedSettings, Load } from './settings.ts'

/* A process of its own, started by `attacked.ts`: a plain service with automation. Whoever writes a name into `Authorization: Bearer NAME` is that name. */

const LOOP_RESOLUTION_MS = 5
const GC_ROUNDS = 3

const { path, memoryBytesMax, memoryWaitMs } = JSON.parse(process.argv[2]) as AttackedSettings
const service = createObjectService({
  backend: filesystemBackend({ path }),
  access: {
    authenticate: ({ headers }): Principal => ({
      subject: headers.get('authorization')?.replace(/^Bearer /, '') ?? 'nobody',
      projects: new Map([[ALL_PROJECTS, 'write' as const]]),
    }),
    authorize: claimAuthorize,
  },
  extensions: [automation()],
  ...(memoryBytesMax === undefined ? {} : { memoryBytesMax }),
  ...(memoryWaitMs === undefined ? {} : { memoryWaitMs }),
})
await service.ready()
const server = createServer((req, res) => service.node(req, res))
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
loop.enable()

function load(): Load {
  const { user, system } = process.cpuUsage()
  const loopHeldMsMax = Math.max(0, loop.max / 1e6 - LOOP_RESOLUTION_MS)
  loop.reset()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return {
    cpuMs: (user + system) / 1_000,
    loopHeldMsMax,
    heldBytes: service.status().requestMemory?.heldBytes ?? 0,
    heapBytes: heapUsed,
    buffersBytes: arrayBuffers,
  }
}

process.on('message', (message) => {
  // What nobody holds any more is not what this process holds.
  if (message === 'collect') for (let round = 0; round < GC_ROUNDS; round++) globalThis.gc?.()
  process.send?.(load())
})
process.once('disconnect', () => process.exit())
process.send?.({ port: (server.address() as AddressInfo).port })
