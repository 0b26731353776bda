import { randomBytes } from 'node:crypto'
import { startBackendHost } from './backend-host.ts'
import { issueToken, startServer } from '../server.ts'
import type { RunningServer } from '../server-process.ts'

/** The server that is measured. What it is not known for stays `undefined`, and the rows that need it are skipped. */
export interface TestedServer {
  readonly description: string
  readonly origin: string
  /** What stands before the paths of the contract, such as `/models`. */
  readonly prefix: string
  readonly token: string
  readonly projects: Projects
  /** Only on this machine. */
  readonly pid?: number
  readonly metricsUrl?: string
  readonly dataFolder?: string
  /** Stops it cleanly and starts it again on the same data. */
  restart?(): Promise<void>
  stop(): Promise<void>
}

/** Names of projects: fresh ones, or the only one that exists on a server of the user's. */
export interface Projects {
  readonly isFixed: boolean
  fresh(name: string): string
}

/**
 * Clients of the benchmark have one address, and up to 500 of them read slowly. A schedule would merge packs in the
 * middle of some row; one row does it instead.
 */
const OPTIONS: readonly string[] =
  '--port 0 --metrics 0 --no-pages --compact-every 0 --connections-max 4000 --waiting-per-address-max 2000 --requests-per-address-max 2000'.split(
    ' ',
  )

/** `stowage serve` of the build, or another program that prints the same line. */
export async function startTested(dataFolder: string, backendModule?: string): Promise<TestedServer> {
  const start = async (): Promise<RunningServer> =>
    backendModule === undefined
      ? await startServer(dataFolder, OPTIONS)
      : await startBackendHost(dataFolder, backendModule)
  const token = await issueToken(dataFolder, '*')
  let running = await start()
  return {
    description: backendModule === undefined ? 'stowage serve, default storage' : `Stowage on ${backendModule}`,
    get origin() {
      return new URL(running.url).origin
    },
    prefix: '',
    token,
    projects: { isFixed: false, fresh: (name) => name },
    get pid() {
      return running.pid
    },
    get metricsUrl() {
      return running.metricsUrl
    },
    dataFolder,
    restart: async () => {
      await running.stop()
      running = await start()
    },
    stop: async () => await running.stop(),
  }
}

export interface RemoteServer {
  readonly url: string
  readonly token: string
  /** A project that exists; without it, each model goes to a project of a new name. */
  readonly projectId?: string | undefined
}

/** Any server of the contract. It is neither started nor stopped. */
export function remoteServer({ url, token, projectId }: RemoteServer): TestedServer {
  const { origin, pathname } = new URL(url)
  const run = randomBytes(4).toString('hex')
  return {
    description: origin,
    origin,
    prefix: pathname.replace(/\/$/, ''),
    token,
    projects: { isFixed: projectId !== undefined, fresh: (name) => projectId ?? `benchmark-${run}-${name}` },
    stop: async () => await Promise.resolve(),
  }
}
