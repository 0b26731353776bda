import { createServer, request } from 'node:http'
import { join } from 'node:path'
import { type ClusterServer, type ServerOptions, startOne, storageOn } from '../../test/engines/cluster.ts'
import { PostgresEngine } from '../../test/engines/postgres-engine.ts'
import { type S3Engine, startS3Engine } from '../../test/engines/s3-engine.ts'
import { startToxiproxy } from '../../test/engines/toxiproxy.ts'
import { stowage } from '../../test/cli/command.ts'
import { listenUntilEnd } from '../../test/support/listen.ts'
import type { Ending } from '../../test/support/folder.ts'
import { COMMAND, issueToken, startServer } from '../server.ts'
import type { Target } from '../upload.ts'

/** A server in a process of its own, and what a client needs to use it. */
export interface MeasuredServer {
  readonly target: Target
  readonly pid: number
  stop(): Promise<void>
}

/** A server that merges by itself would do so in the middle of a measurement. */
const OPTIONS: readonly string[] = ['--no-pages', '--compact-every', '0']
export const NO_CACHE: readonly string[] = ['--blob-cache-bytes-max', '0']

/** Where servers find a storage, and what they read from the environment. */
export interface Place {
  readonly place: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

/** PostgreSQL and an S3 store on the disk, and one storage in them. */
export class RatesStorage {
  readonly token: string
  readonly #ending: Ending
  readonly #postgres: PostgresEngine
  readonly #s3: S3Engine
  readonly #direct: Place

  private constructor(ending: Ending, postgres: PostgresEngine, s3: S3Engine, direct: Place, token: string) {
    this.#ending = ending
    this.#postgres = postgres
    this.#s3 = s3
    this.#direct = direct
    this.token = token
  }

  static async start(ending: Ending, folder: string): Promise<RatesStorage> {
    const [postgres, s3] = await Promise.all([PostgresEngine.start(ending), startS3Engine(ending, join(folder, 's3'))])
    const direct = storageOn({ connectionString: postgres.url(), s3: s3.options })
    const args = ['token', ...direct.place, '--project', '*', '--access', 'write']
    const { code, stdout, stderr } = await stowage(args, direct.env)
    if (code !== 0) throw new Error(stderr)
    return new RatesStorage(ending, postgres, s3, direct, stdout.trim())
  }

  /** The same storage behind a network that takes so much longer. */
  async slow(latencies: Readonly<Record<'postgres' | 's3', number>>): Promise<Place> {
    const ports = await startToxiproxy(this.#ending, { postgres: this.#postgres, s3: this.#s3 })
    for (const [name, latencyMs] of Object.entries(latencies) as [keyof typeof latencies, number][])
      await ports.slowDownOne(name, latencyMs)
    return this.#behind(this.#postgres.url('postgres', ports.postgres), ports.s3)
  }

  /** The same storage, with each GET to the S3 store counted. What passes costs this process time. */
  async counting(): Promise<Place & { readonly counted: { gets: number } }> {
    const counted = { gets: 0 }
    const proxy = createServer((incoming, outgoing) => {
      const { method, url: path, headers } = incoming
      if (method === 'GET') counted.gets++
      const forwarded = request({ host: '127.0.0.1', port: this.#s3.port, method, path, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(outgoing)
      })
      forwarded.on('error', () => outgoing.destroy())
      incoming.pipe(forwarded)
    })
    const { url } = await listenUntilEnd(this.#ending, proxy)
    return { ...this.#behind(this.#postgres.url(), Number(new URL(url).port)), counted }
  }

  async server(options: readonly string[], at: Place = this.#direct): Promise<MeasuredServer & ClusterServer> {
    const started: ServerOptions = { args: [...OPTIONS, ...options], command: [COMMAND] }
    const server = await startOne(this.#ending, at, started)
    const { pid } = server.running.child
    if (pid === undefined) throw new Error('the server has no process')
    return {
      ...server,
      pid,
      target: { url: server.url, token: this.token, projectId: 'model' },
      stop: async () => void (await server.running.stop()),
    }
  }

  #behind(connectionString: string, s3Port: number): Place {
    const s3 = { ...this.#s3.options, endpoint: `http://127.0.0.1:${s3Port}` }
    return { place: storageOn({ connectionString, s3 }).place, env: this.#direct.env }
  }
}

/** A server over files, the default of `stowage serve`. */
export async function serverOverFiles(folder: string): Promise<MeasuredServer> {
  const data = join(folder, 'files')
  const token = await issueToken(data, '*')
  const server = await startServer(data, ['--port', '0', ...OPTIONS])
  return { target: { url: server.url, token, projectId: 'model' }, pid: server.pid, stop: () => server.stop() }
}
