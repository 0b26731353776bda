import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SignJWT } from 'jose'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import {
  type Access,
  type CommonServiceOptions,
  continueOnExpect,
  createObjectService,
  jwtAccess,
  type ObjectService,
  type AccessRight,
  type StorageBackend,
} from '../../src/index.ts'
import { startBalancedHosts } from '../engines/balanced-hosts.ts'
import { jsonUpload } from '../http/served.ts'
import { eventually } from '../support/patience.ts'
import { newSharedStorage, SHARED_ENGINES } from '../support/several-servers.ts'

const ISSUER = 'https://issuer.example'
const AUDIENCE = 'stowage-tests'

/**
 * Who asks: by default whoever may write every project. The stranger may write a project that is none of the tests'.
 */
export type Who = 'writer' | 'reader' | 'stranger' | 'nobody'

/** One way to reach the service, with a project that no other test uses. */
export interface Side {
  readonly name: string
  readonly project: string
  /** The origin of the plain server; under `fetch` a name that is never resolved. */
  readonly url: string
  readonly ask: (path: string, init?: RequestInit, who?: Who) => Promise<Response>
}

/** A test that runs once for each side. */
export type SidesTest = (name: string, check: (side: Side) => Promise<void>) => void

type OpenSide = Omit<Side, 'project'>
export type SidesOptions = Partial<Omit<CommonServiceOptions<unknown>, 'access'>>

/**
 * Both cores, plain `http` and `fetch`, over memory and over files: what the contract says must be the same on all
 * four. On shared engines it is `http` behind nginx, which sends each request to another of three servers. They open before
 * the first test of a file and close after the last.
 */
export function onEverySide(options: SidesOptions = {}): SidesTest {
  const open: OpenSide[] = []
  const closers: (() => Promise<void>)[] = []
  let projects = 0
  before(async () => {
    const openService = (backend: StorageBackend): ObjectService =>
      createObjectService({ ...options, backend, access: accessOf(secret) })
    const secret = randomBytes(32)
    if (SHARED_ENGINES !== undefined) {
      const services = newSharedStorage(SHARED_ENGINES).map(openService)
      const { url, close } = await startBalancedHosts(services, async (service) => createServer(service.node))
      closers.unshift(close)
      open.push(overHttp('three servers behind nginx', url, await tokensOf(secret)))
      return
    }
    const folder = await mkdtemp(join(tmpdir(), 'stowage-contract-'))
    closers.unshift(() => rm(folder, { recursive: true, force: true }))
    for (const [storage, backend] of [
      ['memory', memoryBackend()],
      ['files', filesystemBackend({ path: folder })],
    ] as const) {
      open.push(...(await openSides(storage, openService(backend), secret, closers)))
    }
  })
  after(async () => {
    for (const close of closers) await close()
  })
  return (name, check) => {
    void test(name, async (t) => {
      for (const side of open) await t.test(side.name, () => check({ ...side, project: `project-${projects++}` }))
    })
  }
}

async function openSides(
  storage: string,
  service: ObjectService,
  secret: Uint8Array,
  closers: (() => Promise<void>)[],
): Promise<readonly OpenSide[]> {
  const { url, close } = await listening(service)
  closers.unshift(async () => {
    await close()
    await service.close({ graceMs: 0 })
  })
  const tokens = await tokensOf(secret)
  return [
    overHttp(storage, url, tokens),
    {
      name: `fetch over ${storage}`,
      url: 'http://in.process',
      ask: (path, init = {}, who = 'writer') =>
        service.fetch(new Request(`http://in.process${path}`, withHeaders(init, authorization(tokens[who])))),
    },
  ]
}

function overHttp(storage: string, url: string, tokens: Awaited<ReturnType<typeof tokensOf>>): OpenSide {
  return {
    name: `http over ${storage}`,
    url,
    ask: (path, init = {}, who = 'writer') => fetch(`${url}${path}`, withHeaders(init, authorization(tokens[who]))),
  }
}

/** A service behind a port of this machine. */
export async function listening(
  service: ObjectService,
): Promise<{ readonly url: string; readonly port: number; readonly close: () => Promise<void> }> {
  const server = createServer((req, res) => service.node(req, res))
  continueOnExpect(server, service)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { url: `http://127.0.0.1:${port}`, port, close }
}

export function accessOf(secret: Uint8Array): Access<unknown> {
  return jwtAccess({ keys: secret, issuer: ISSUER, audience: AUDIENCE, algorithms: ['HS256'] })
}

/** A JWT that grants these rights, for ten minutes unless told otherwise. */
export function tokenFor(
  secret: Uint8Array,
  projects: Readonly<Record<string, AccessRight>>,
  expires: string | number = '10m',
): Promise<string> {
  return new SignJWT({ stowage: { projects } })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setSubject('somebody')
    .setJti('1')
    .setIssuedAt()
    .setExpirationTime(expires)
    .sign(secret)
}

async function tokensOf(secret: Uint8Array): Promise<Readonly<Record<Who, string | undefined>>> {
  return {
    writer: await tokenFor(secret, { '*': 'write' }),
    reader: await tokenFor(secret, { '*': 'read' }),
    stranger: await tokenFor(secret, { elsewhere: 'write' }),
    nobody: undefined,
  }
}

export function authorization(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

/** The request with further headers, which win. */
export function withHeaders(init: RequestInit, further: Readonly<Record<string, string>>): RequestInit {
  return {
    ...init,
    headers: { ...Object.fromEntries(new Headers(init.headers)), ...Object.fromEntries(new Headers(further)) },
  }
}

/** Stores objects and fails if that fails. */
export async function store(side: Side, objects: readonly unknown[]): Promise<unknown> {
  return storeText(side, jsonUpload(objects).body as string)
}

/** The same for a text that is spelled in a way of its own. */
export async function storeText({ ask, project }: Side, text: string): Promise<unknown> {
  const answer = await ask(`/objects/${project}`, { ...jsonUpload([]), body: text })
  const summary = await answer.text()
  if (answer.status !== 200) throw new Error(`the upload was answered with ${answer.status}: ${summary}`)
  return JSON.parse(summary)
}

/** The answer for a graph once its plan is there: the first one does not wait for a plan that takes long. */
export async function planned({ ask }: Side, path: string, init: RequestInit = {}): Promise<Response> {
  let answer = await ask(path, init)
  await eventually(async () => {
    if (answer.headers.has('etag')) return true
    await answer.arrayBuffer()
    answer = await ask(path, init)
    return false
  }, `${path} gets a plan`)
  return answer
}

/** A list of ids as the contract has it: a string that holds a JSON array. */
export function contractList(ids: readonly string[], headers: Readonly<Record<string, string>> = {}): RequestInit {
  return {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ objects: JSON.stringify(ids) }),
  }
}

export interface Part {
  readonly headers: readonly string[]
  readonly content: Uint8Array | string
}

/** A file as most clients send it. */
export function filePart(content: Uint8Array | string, contentType: string, name: string = 'file'): Part {
  return {
    headers: [`Content-Disposition: form-data; name="${name}"; filename="${name}"`, `Content-Type: ${contentType}`],
    content,
  }
}

/** A multipart/form-data upload (RFC 7578), byte for byte as given. */
export function multipartUpload(
  parts: readonly Part[],
  boundary: string = 'a-boundary-of-tests',
): RequestInit & { readonly body: Uint8Array<ArrayBuffer> } {
  const pieces = parts.flatMap(({ headers, content }) => [
    `--${boundary}\r\n${headers.join('\r\n')}\r\n\r\n`,
    content,
    '\r\n',
  ])
  const body = Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece as string)))
  return { method: 'POST', headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` }, body }
}

/** What an error answer tells, which must have the one shape of all errors. */
export async function shapedError(
  answer: Response,
): Promise<{ readonly status: number; readonly code: string; readonly message: string }> {
  const body = (await answer.json()) as { readonly message: string; readonly statusCode: number; readonly code: string }
  const { message, statusCode, code } = body
  assert.deepEqual(Object.keys(body), ['message', 'statusCode', 'code'], JSON.stringify(body))
  assert.deepEqual([typeof message, statusCode, typeof code], ['string', answer.status, 'string'], JSON.stringify(body))
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/)
  return { status: statusCode, code, message }
}

/** The tab-separated lines of an answer, by id. */
export async function linesOf(answer: Response): Promise<Map<string, string>> {
  const text = await answer.text()
  const type = answer.headers.get('content-type')
  if (type?.startsWith('text/plain') !== true) throw new Error(`not lines but ${type}: ${text}`)
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line does not end')
  return new Map(
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => [line.slice(0, line.indexOf('\t')), line.slice(line.indexOf('\t') + 1)]),
  )
}
