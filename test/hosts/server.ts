import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { closeSync, openSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { continueOnExpect, createObjectService, openAccess } from '../../src/index.ts'
import { HOSTS } from '../mounts/hosts.ts'
import { LoopWatch } from './loop-watch.ts'
import type { Command, Holdings, ServerSettings, Told } from './settings.ts'

/* A process of its own, started by `process.ts`: one mount over a data folder. It tells what it holds, and can be made to fail as a machine fails. */

const KEEP_ALIVE_MS = 300_000

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const {
  host: name,
  path,
  prefix,
  limits,
  stallTimeoutMs,
  headersTimeoutMs,
} = JSON.parse(process.argv[2]) as ServerSettings
const host = HOSTS.find((candidate) => candidate.name === name)
if (host === undefined) throw new Error(`there is no host ${JSON.stringify(name)}`)
const service = createObjectService({
  backend: filesystemBackend({ path, diskReserveBytes: 4_194_304 }),
  access: openAccess(),
  ...(limits === undefined ? {} : { limits }),
  ...(stallTimeoutMs === undefined ? {} : { stallTimeoutMs }),
})
await service.ready()
const server = await host.open(service, prefix)
continueOnExpect(server, service)
// A test that takes all files has only the connection that is open already, however long it takes to use it.
server.keepAliveTimeout = KEEP_ALIVE_MS
if (headersTimeoutMs !== undefined) server.headersTimeout = headersTimeoutMs
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const loop = new LoopWatch()
const taken: number[] = []
const probe = await open(process.execPath, 'r')
const fileMethods = Object.getPrototypeOf(probe) as { sync: () => Promise<void> }
await probe.close()
const realSync = fileMethods.sync

function takeAllFiles(): void {
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EMFILE') throw error
  }
}

async function holdings(): Promise<Holdings> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    collectGarbage()
  }
  const { heapUsed, external, rss } = process.memoryUsage()
  const connections = await new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count)))
  return {
    heldBytes: heapUsed + external,
    rssBytes: rss,
    rssBytesMax: process.resourceUsage().maxRSS * 1_024,
    loopP99Ms: loop.p99Ms(),
    connections,
  }
}

const COMMANDS: Readonly<Record<Told, () => unknown>> = {
  holdings,
  'watch loop': () => loop.start(),
  'take all files': takeAllFiles,
  'give files back': () => taken.splice(0).forEach((file) => closeSync(file)),
  'fail syncs': () =>
    (fileMethods.sync = () => Promise.reject(Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' }))),
  'let syncs be': () => (fileMethods.sync = realSync),
}

process.on('message', (command: Command) => {
  const done = typeof command === 'string' ? COMMANDS[command]() : service.close(command.close)
  void Promise.resolve(done).then((answer) => process.send?.({ answer: command === 'holdings' ? answer : null }))
})
process.once('disconnect', () => process.exit())
process.send?.({ port: (server.address() as AddressInfo).port })
