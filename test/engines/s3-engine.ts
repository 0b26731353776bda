import { AwsV4Signer } from 'aws4fetch'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { CredentialSource } from '../../adapters/s3/credentials.ts'
import { type S3BlobsOptions } from '../../adapters/s3/index.ts'
import { S3Addresses } from '../../adapters/s3/place.ts'
import { S3Client } from '../../adapters/s3/s3-client.ts'
import { type Ending, folderInMemory } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'
import { freePort } from '../../bench/free-port.ts'

/** `.ci/engines` builds them; `STOWAGE_TEST_S3` names another S3 engine of those that it builds. */
const VERSIONS: Readonly<Record<string, string>> = {
  versitygw: '1.8.0',
  minio: '0.0.0-20260212201848-7aac2a2c5b7c',
  toxiproxy: '2.5.0',
}
const CREDENTIALS = { accessKeyId: 'stowage-test', secretAccessKey: 'stowage-test-secret' }
const BUCKET = 'stowage-test'

/** An S3 store of its own for one test file, on a free port of this machine. */
export interface S3Engine {
  readonly options: S3BlobsOptions
  readonly port: number
  start(): Promise<void>
  /** `SIGKILL`, at once. */
  kill(): Promise<void>
}

/** It keeps its objects in memory, unless a folder is given. */
export async function startS3Engine(ending: Ending, folder: string = folderInMemory(ending)): Promise<S3Engine> {
  const port = await freePort()
  for (const name of ['data', 'metadata', 'home']) await mkdir(join(folder, name), { recursive: true })
  const options: S3BlobsOptions = { endpoint: `http://127.0.0.1:${port}`, bucket: BUCKET, credentials: CREDENTIALS }
  const running: { child?: ChildProcess } = {}
  const kill = async (): Promise<void> => {
    const { child } = running
    running.child = undefined
    if (child === undefined || child.exitCode !== null || !child.kill('SIGKILL')) return
    await once(child, 'exit')
  }
  const start = async (): Promise<void> => {
    running.child = spawnEngine(port, folder)
    await listens(running.child, port)
  }
  ending.after(() => void kill())
  await start()
  const client = s3TestClient(options)
  await client.send({ method: 'PUT' })
  client.close()
  return { options, port, start, kill }
}

/** Requests without the adapter: to look at what it left. */
export function s3TestClient(options: S3BlobsOptions): S3Client {
  const credentials = new CredentialSource(options.credentials)
  return new S3Client({ addresses: new S3Addresses(options), credentials, signer: AwsV4Signer, timeoutMs: 10_000 })
}

/** The program of an engine, in the folder of `.ci/engines`. */
export function engineProgram(name: string): string {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')
  const program = join(cache, 'stowage-engines', `${name}-${VERSIONS[name]}`, name)
  if (!existsSync(program)) throw new Error(`${program} is missing: run .ci/engines`)
  return program
}

/** Resolves when something listens on the port; rejects when the process ends before. */
export async function listens(child: ChildProcess, port: number): Promise<void> {
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text))
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`the engine has ended: ${said}`)
    const socket = connect(port, '127.0.0.1')
    const isConnected = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isConnected
  }, `an engine listens on port ${port}`)
}

function spawnEngine(port: number, folder: string): ChildProcess {
  const name = process.env.STOWAGE_TEST_S3 ?? 'versitygw'
  const address = `127.0.0.1:${port}`
  const { accessKeyId, secretAccessKey } = CREDENTIALS
  const settings: Readonly<Record<string, readonly string[]>> = {
    versitygw: [
      '--port',
      address,
      '--keep-alive',
      '--quiet',
      'posix',
      '--sidecar',
      join(folder, 'metadata'),
      join(folder, 'data'),
    ],
    minio: ['server', '--quiet', '--address', address, join(folder, 'data')],
  }
  return spawn(engineProgram(name), settings[name], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: join(folder, 'home'),
      ROOT_ACCESS_KEY: accessKeyId,
      ROOT_SECRET_KEY: secretAccessKey,
      MINIO_ROOT_USER: accessKeyId,
      MINIO_ROOT_PASSWORD: secretAccessKey,
    },
  })
}
