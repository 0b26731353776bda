import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../bench/free-port.ts'
import { type RunningServer, startServer, stowage } from '../cli/command.ts'
import { deployFile, startProgram } from '../deploy/support.ts'
import { type Ending, temporaryFolder } from '../support/folder.ts'
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
}

export async function startCluster(t: Ending, serverCount: number, args: readonly string[] = []): Promise<Cluster> {
  const [postgres, s3] = await Promise.all([PostgresEngine.start(t), startS3Engine(t)])
  const env = environmentOf(s3)
  const place = placeOf(postgres, s3)
  const servers: ClusterServer[] = []
  for (let count = 0; count < serverCount; count++) servers.push(await startOne(t, { place, env }, args))
  const issued = await stowage(['token', ...place, '--project', '*', '--access', 'write'], env)
  if (issued.code !== 0) throw new Error(issued.stderr)
  return { servers, postgres, s3, place, env, token: issued.stdout.trim() }
}

/** One more server. It keeps nothing of its own but what runs functions. */
export async function startOne(
  t: Ending,
  { place, env }: Pick<Cluster, 'place' | 'env'>,
  args: readonly string[] = [],
): Promise<ClusterServer> {
  const data = join(temporaryFolder(t), 'data')
  const running = await startServer(t, ['--data', data, ...place, '--json', ...args], env)
  return { url: (JSON.parse(running.line) as { readonly url: string }).url, running }
}

/** nginx in front of three servers, as the page says: each request goes to the next one. */
export async function startBalancer(t: Ending, { servers }: Pick<Cluster, 'servers'>): Promise<string> {
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
      proxy_request_buffering off; proxy_buffering off; proxy_read_timeout 300s;
    }
  }
}
`
  const path = join(folder, 'nginx.conf')
  writeFileSync(path, settings)
  await startProgram(t, ['nginx', '-p', folder, '-c', path, '-e', 'stderr'], { port })
  return `http://127.0.0.1:${port}`
}

function placeOf(postgres: PostgresEngine, { options: { endpoint, bucket } }: S3Engine): readonly string[] {
  const blobs = `s3://${bucket}/models?endpoint=${encodeURIComponent(String(endpoint))}`
  return ['--records', postgres.url(), '--blobs', blobs]
}

function environmentOf({ options: { credentials } }: S3Engine): NodeJS.ProcessEnv {
  if (credentials === undefined || typeof credentials === 'function') throw new TypeError('the engine has fixed keys')
  return {
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    STOWAGE_SEALING_KEY: randomBytes(32).toString('hex'),
  }
}
