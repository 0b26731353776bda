import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { REPOSITORY } from '../../bench/repository.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { type Ending, temporaryFolder } from '../support/folder.ts'

const DEPLOY: string = join(REPOSITORY, 'docs/deploy')

/** The path of a file that the page on deployment shows. */
export function deployPath(name: string): string {
  return join(DEPLOY, name)
}

/**
 * Such a file, with what belongs to the reader's machine replaced. Each text must be there, so that the file cannot
 * drift from its test.
 */
export async function deployFile(name: string, replacements: Readonly<Record<string, string>> = {}): Promise<string> {
  let content = await readFile(deployPath(name), 'utf8')
  for (const [from, to] of Object.entries(replacements)) {
    assert.ok(content.includes(from), `${name} has no ${JSON.stringify(from)} any more`)
    content = content.replaceAll(from, to)
  }
  return content
}

export function scratchFolder(t: TestContext): string {
  const folder = temporaryFolder(t)
  return folder
}

const COMPLAINTS_CHARS_MAX = 4_000

/** Debian keeps nginx where only administrators look. */
const PATH = `${process.env.PATH}:/usr/sbin`

/** Starts a program and resolves once it listens, to what tells its last lines on stderr. It is ended with the test. */
export async function startProgram(
  t: Ending,
  command: readonly [program: string, ...args: string[]],
  { port, env = {} }: { readonly port: number; readonly env?: NodeJS.ProcessEnv },
): Promise<() => string> {
  const [program, ...args] = command
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, PATH, ...env } })
  t.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const killing = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    await ended
    clearTimeout(killing)
  })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = `${complaints}${text}`.slice(-COMPLAINTS_CHARS_MAX)
  })
  await once(child, 'spawn')
  for (const deadline = performance.now() + PATIENCE_MS; !(await listens(port)); await delay(50)) {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${complaints}`)
    if (performance.now() > deadline) throw new Error(`${program} did not listen on port ${port}: ${complaints}`)
  }
  return () => complaints
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Runs a program to its end and returns everything that it printed. Fails if it fails. */
export function runToEnd(program: string, args: readonly string[], cwd?: string): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    encoding: 'utf8',
    cwd,
    env: { ...process.env, PATH },
  })
  if (error !== undefined) throw error
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stdout}${stderr}`)
  return `${stdout}${stderr}`
}

export interface Upstream {
  readonly port: number
  readonly metricsUrl: string
  /** May write to the project `demo`. */
  readonly token: string
}

/** `stowage serve` as the unit runs it, on free ports. */
export async function startUpstream(t: TestContext, args: readonly string[] = []): Promise<Upstream> {
  const data = newDataFolder(t)
  const issued = await stowage(['token', '--data', data, '--project', 'demo', '--access', 'write'])
  const { line } = await startServer(t, ['--data', data, '--json', '--metrics', '0', ...args])
  const { url, metricsUrl } = JSON.parse(line) as { readonly url: string; readonly metricsUrl: string }
  return { port: Number(new URL(url).port), metricsUrl, token: issued.stdout.trim() }
}

export interface Proxied extends Upstream {
  /** The address of the proxy. */
  readonly url: string
  /** A file with the certificate that clients need to trust. */
  readonly caPath: string
  /** The last lines that the proxy printed on stderr. */
  readonly complaints: () => string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface Question {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/**
 * A request whose body is sent chunk by chunk, and its answer as it came. Like most clients, it reads the answer while
 * it still sends. What the proxy says of a request that fails is in the error.
 */
export async function ask(
  { caPath, token, complaints }: Pick<Proxied, 'caPath' | 'token' | 'complaints'>,
  url: string,
  { method = 'GET', headers = {}, body = [] }: Question = {},
): Promise<Answer> {
  const ca = await readFile(caPath)
  const request = new URL(url).protocol === 'https:' ? httpsRequest : httpRequest
  const sent = request(url, { method, ca, headers: { Authorization: `Bearer ${token}`, ...headers } })
  const beganAtMs = performance.now()
  const answered = new Promise<Answer>((resolve, reject) => {
    const failed = (cause: Error): void => {
      const afterMs = Math.round(performance.now() - beganAtMs)
      reject(new Error(`${method} failed after ${afterMs} ms: ${cause.message}; ${complaints()}`, { cause }))
    }
    sent.once('error', failed)
    sent.once('response', (response) => {
      buffer(response).then(
        (whole) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole }),
        failed,
      )
    })
  })
  let isOver = false
  const over = answered.then(
    () => (isOver = true),
    () => (isOver = true),
  )
  for await (const chunk of body) {
    if (isOver) break
    if (!sent.write(chunk)) await Promise.race([once(sent, 'drain').catch(() => undefined), over])
  }
  sent.end()
  return answered
}

/** The same over HTTP/2, which browsers speak with proxies. */
export async function askHttp2(
  { caPath, token }: Pick<Proxied, 'caPath' | 'token'>,
  url: string,
  { method = 'GET', headers = {}, body = [] }: Question = {},
): Promise<Pick<Answer, 'status' | 'body'>> {
  const { origin, pathname } = new URL(url)
  const session = connectHttp2(origin, { ca: await readFile(caPath) })
  try {
    const stream = session.request({
      ...headers,
      ':method': method,
      ':path': pathname,
      authorization: `Bearer ${token}`,
    })
    const whole = buffer(stream)
    const sent = pipeline(Readable.from(body), stream).catch(() => undefined)
    const [answered] = (await once(stream, 'response')) as [IncomingHttpHeaders & { readonly ':status'?: number }]
    const answer = { status: answered[':status'] ?? 0, body: await whole }
    stream.close()
    await sent
    return answer
  } finally {
    session.close()
  }
}
