import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { SignJWT } from 'jose'
import { createClient } from '../../src/client/index.ts'
import { assertSameObjects, linesById, required } from '../clients/support.ts'
import { codeBlocks } from '../support/markdown.ts'
import { buildModel } from '../support/model.ts'
import { eventually, PATIENCE_MS } from '../support/patience.ts'
import { freePort } from '../../bench/free-port.ts'

/* The programs on the page about hosts, each run by its own runtime with the packed package. */

interface Recipe {
  /** The section of the page. */
  readonly host: string
  /** Where its code blocks go, in order. */
  readonly files: readonly string[]
  readonly build?: readonly string[]
  readonly start: readonly string[]
}

const RECIPES: readonly Recipe[] = [
  { host: 'NestJS', files: ['nest/main.mjs'], start: ['node', 'nest/main.mjs'] },
  { host: 'Next.js', files: ['server.mjs'], build: ['next', 'build'], start: ['node', 'server.mjs'] },
  { host: 'Bun', files: ['bun/main.mjs'], start: ['bun', 'bun/main.mjs'] },
  {
    host: 'Deno',
    files: ['deno/main.mjs'],
    start: ['deno', 'run', '--allow-all', '--node-modules-dir=manual', 'deno/main.mjs'],
  },
]

/** The smallest site that Next.js builds. */
const SITE: Readonly<Record<string, string>> = {
  'app/layout.js': 'export default ({ children }) => <html lang="en"><body>{children}</body></html>',
  'app/page.js': 'export default () => <h1>Hello from the host</h1>',
}

const OBJECTS = 5_000
const KEY = randomBytes(32)
const OVER_LIMIT_BYTES = 51 * 1_048_576

for (const recipe of RECIPES) {
  void test(`the recipe for ${recipe.host} serves a model, parts of it, and a 413`, async (t) => {
    const { url, data, stop } = await started(t, recipe)
    const token = await tokenFor('write')
    await carriesModel(url, token)
    await refuses(url, token)
    await stop()
    assert.ok(!existsSync(join(data, 'stowage.lock')), 'SIGTERM did not close the service')
  })
}

async function carriesModel(url: string, token: string): Promise<void> {
  const { objects, rootId, byId } = buildModel({ objects: OBJECTS })
  await createClient({ url, token }).project('demo').upload(objects)
  const headers = { Authorization: `Bearer ${token}`, Accept: 'text/plain' }
  const graph = `${url}/objects/demo/${rootId}`
  // The length of an answer is known once it is planned.
  await eventually(
    async () => (await fetch(graph, { method: 'HEAD', headers })).headers.has('etag'),
    'the download is planned',
  )
  const whole = await fetch(graph, { headers: { ...headers, 'Accept-Encoding': 'identity' } })
  const bytes = Buffer.from(await whole.arrayBuffer())
  assertSameObjects(linesById(bytes.toString()), byId)
  assert.equal(whole.headers.get('content-length'), String(bytes.length))
  const from = Math.floor(bytes.length / 2)
  const wanted = { 'Accept-Encoding': 'identity', Range: `bytes=${from}-`, 'If-Range': whole.headers.get('etag') ?? '' }
  const part = await fetch(graph, { headers: { ...headers, ...wanted } })
  assert.equal(part.status, 206)
  assert.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(from)))
  const stream = await fetch(`${url}/api/v2/projects/demo/object-stream/`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify({ objectIds: [rootId] }),
    redirect: 'error',
  })
  assert.equal(await stream.text(), `${rootId}\t${byId.get(rootId)}\n`)
}

async function refuses(url: string, token: string): Promise<void> {
  assert.equal((await fetch(`${url}/objects/demo/a`)).status, 401)
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${await tokenFor('read')}` }
  assert.equal((await fetch(`${url}/objects/demo`, { method: 'POST', headers, body: '[{"id":"a"}]' })).status, 403)
  const body = Buffer.alloc(OVER_LIMIT_BYTES, ' ')
  const large = { method: 'POST', headers: { ...headers, Authorization: `Bearer ${token}` }, body }
  const refused = await fetch(`${url}/objects/demo`, large)
  assert.equal(refused.status, 413)
  assert.equal(((await refused.json()) as { readonly code: string }).code, 'request_too_large')
}

function tokenFor(right: 'read' | 'write'): Promise<string> {
  return new SignJWT({ stowage: { projects: { demo: right } } })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('https://accounts.example')
    .setAudience('models')
    .setSubject('ada')
    .setJti('1')
    .setIssuedAt()
    .setExpirationTime('15m')
    .sign(KEY)
}

interface Started {
  readonly url: string
  readonly data: string
  stop(): Promise<void>
}

async function started(t: TestContext, { host, files, build, start }: Recipe): Promise<Started> {
  const folder = required('STOWAGE_TEST_RECIPES', 'a folder with the packed package and all hosts in node_modules')
  const blocks = await codeBlocks('hosts.md', 'js', host)
  assert.equal(blocks.length, files.length)
  const contents = { ...SITE, ...Object.fromEntries(files.map((file, at) => [file, blocks[at]])) }
  for (const [file, content] of Object.entries(contents)) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), content)
  }
  const data = join(await mkdtemp(join(tmpdir(), 'stowage-recipe-')), 'data')
  t.after(() => rm(dirname(data), { recursive: true, force: true }))
  const port = await freePort()
  const env = {
    ...process.env,
    PATH: `${join(folder, 'node_modules/.bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
    NEXT_TELEMETRY_DISABLED: '1',
    TOKEN_KEY: KEY.toString('hex'),
    DATA: data,
    PORT: String(port),
  }
  if (build !== undefined) await promisify(execFile)(build[0], build.slice(1), { cwd: folder, env })
  const [program, ...args] = start
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  const complaints = text(child.stderr)
  const url = `http://127.0.0.1:${port}/models`
  for (const deadline = performance.now() + PATIENCE_MS; !(await answers(url)); await delay(100)) {
    if (child.exitCode !== null) throw new Error(`${host} ended: ${await complaints}`)
    assert.ok(performance.now() < deadline, `${host} does not answer`)
  }
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
  }
  return { url, data, stop }
}

async function answers(url: string): Promise<boolean> {
  return fetch(`${url}/api/openapi.json`).then(
    ({ ok }) => ok,
    () => false,
  )
}
