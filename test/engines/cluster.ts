import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { S3BlobsOptions } from '../../adapters/s3/index.ts'
import { freePort } from '../../bench/free-port.ts'
import { serverLineOf } from '../../bench/server-process.ts'
import { type RunningServer, startServer, stowage } from '../cli/command.ts'
import { deployFile, startProgram } from '../deploy/support.ts'
import { type Ending, temporaryFolder } from '../support/folder.ts'
import type { SharedEngines } from '../support/several-servers.ts'
import { PostgresEngine } from './postgres-engine.ts'
import { type S3Engine, startS3Engine } from './s3-engine.ts'

/** Servers over one PostgreSQL and one S3 store, as `docs/cluster.md` sets them up. */
export interface Cluster {
  readonly servers: readonly ClusterServer[]
  readonly postgres: PostgresEngine
  readonly s3: S3Engine
  /** The addresses of the storage, as options of the command. */
  readonly place: readonly string[]
  /** What the command reads from the environment: credentials of the S3 store, and the sealing key. */
  readonly env: NodeJS.ProcessEnv
  /** A token for every project, which may write. */
  readonly token: string
}

export interface ClusterServer {
  url: string
  running: RunningServer
  /** Signs a browser in, once and within five minutes. */
  readonly signInUrl?: string
}

/** The storage of a cluster, before any server uses it. */
export async function startStorage(t: Ending): Promise<Pick<Cluster, 'postgres' | 's3' | 'env' | 'place'>> {
  const [postgres, s3] = await Promise.all([PostgresEngine.start(t), startS3Engine(t)])
  return { postgres, s3, ...storageOn({ connectionString: postgres.url(), s3: s3.options }) }
}

/** The storage for a command; several may share the engines under different names. */
export function storageOn(
  { connectionString, s3 }: Pick<SharedEngines, 'connectionString' | 's3'>,
  name: string = 'models',
): Pick<Cluster, 'env' | 'place'> {
  const records = `${connectionString}?schema=${name}`
  const blobs = `s3://${s3.bucket}/${name}?endpoint=${encodeURIComponent(String(s3.endpoint))}`
  return { env: environmentOf(s3), place: ['--records', records, '--blobs', blobs] }
}

export async function startCluster(t: Ending, serverCount: number, options: ServerOptions = {}): Promise<Cluster> {
  const storage = await startStorage(t)
  return { ...storage, ...(await startServers(t, storage, serverCount, options)) }
}

/** Servers over a storage, and a token for them. */
export async function startServers(
  t: Ending,
  storage: Pick<Cluster, 'place' | 'env'>,
  serverCount: number,
  options: ServerOptions = {},
): Promise<Pick<Cluster, 'servers' | 'token'>> {
  const { place, env } = storage
  const issued = await stowage(['token', ...place, '--project', '*', '--access', 'write'], env)
  if (issued.code !== 0) throw new Error(issued.stderr)
  const token = issued.stdout.trim()
  const servers: ClusterServer[] = []
  const own = { place, env: { ...env, STOWAGE_TOKEN: token } }
  for (let count = 0; count < serverCount; count++) servers.push(await startOne(t, own, options))
  return { servers, token }
}

export interface ServerOptions {
  /** Further options of `stowage serve`. */
  readonly args?: readonly string[]
  /** The command of another build. */
  readonly command?: readonly string[]
}

/** One more server. It keeps nothing of its own but what runs functions. With a token it makes a link that signs in. */
export async function startOne(
  t: Ending,
  { place, env }: Pick<Cluster, 'place' | 'env'>,
  { args = [], command }: ServerOptions = {},
): Promise<ClusterServer> {
  const data = join(temporaryFolder(t), 'data')
  const running = await startServer(t, ['--data', data, ...place, '--json', ...args], env, command)
  const line = serverLineOf(running.line)
  if (line === undefined) throw new Error(`the server should print its line of JSON, but printed "${running.line}"`)
  const { url, signInUrl } = line
  return { url, running, signInUrl }
}

/** nginx in front of three servers, as the page says: each request goes to the next one. */
export async function startBalancer(
  t: Ending,
  { servers }: { readonly servers: readonly Pick<ClusterServer, 'url'>[] },
  { readTimeoutSeconds = 75 }: { readonly readTimeoutSeconds?: number } = {},
): Promise<string> {
  if (servers.length !== 3) throw new RangeError(`the file of the page names three servers, not ${servers.length}`)
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'logs'))
  const port = await freePort()
  const upstream = await deployFile(
    'nginx-cluster.conf',
    Object.fromEntries(servers.map(({ url }, at) => [`10.0.0.${at + 1}:8642`, new URL(url).host])),
  )
  const settings = `daemon off; pid nginx.pid; error_log stderr error;
events { worker_connections 512; }
http {
  access_log off; client_max_body_size 0;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
${upstream}
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://stowage; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_request_buffering off; proxy_buffering off; proxy_connect_timeout 5s; proxy_read_timeout ${readTimeoutSeconds}s;
    }
  }
}
`
  const path = join(folder, 'nginx.conf')
  writeFileSync(path, settings)
  await startProgram(t, ['nginx', '-p', folder, '-c', path, '-e', 'stderr'], { port })
  return `http://127.0.0.1:${port}`
}

function environmentOf({ credentials }: S3BlobsOptions): NodeJS.ProcessEnv {
  if (credentials === undefined || typeof credentials === 'function') throw new TypeError('the engine has fixed keys')
  return {
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    STOWAGE_SEALING_KEY: randomBytes(32).toString('hex'),
  }
}
