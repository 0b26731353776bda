import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import * as stowage from '../../src/index.ts'
import {
  createObjectService,
  ERROR_STATUS,
  type ObjectService,
  openAccess,
  type StowageError,
} from '../../src/index.ts'
import { errorOf, idList, jsonUpload } from '../http/served.ts'
import { readSource, readSources } from '../support/sources.ts'
import { accessOf, authorization, contractList, listening, onEverySide, planned, store, tokenFor } from './sides.ts'
import { listenUntilEnd } from '../support/listen.ts'
import { eventually } from '../support/patience.ts'
import { openServers, SHARED_ENGINES } from '../support/several-servers.ts'

/* What the public surface promises in words, one test for each promise. The limits are in limits.test.ts; revocation and the command in access/ and cli/. */

const everySide = onEverySide()

function opened(t: TestContext, options: Partial<stowage.CommonServiceOptions<unknown>> = {}): ObjectService {
  const service = openServers((backend) => createObjectService({ access: openAccess(), ...options, backend }))
  t.after(() => service.close({ graceMs: 0 }))
  return service
}

test('a token\'s claim: {"stowage":{"projects":{"<id>":"read"|"write","*":"read"|"write"}}}', async (t) => {
  const secret = randomBytes(32)
  const service = opened(t, { access: accessOf(secret) })
  const rightsOf = async (
    projects: Record<string, stowage.AccessRight>,
    project: string,
  ): Promise<readonly number[]> => {
    const headers = authorization(await tokenFor(secret, projects))
    const diff = await service.fetch(new Request(`http://x/api/diff/${project}`, contractList([], headers)))
    const single = await service.fetch(new Request(`http://x/objects/${project}/a/single`, { headers }))
    await Promise.all([diff.arrayBuffer(), single.arrayBuffer()])
    return [diff.status, single.status]
  }
  assert.deepEqual(await rightsOf({ p: 'write' }, 'p'), [200, 404])
  assert.deepEqual(await rightsOf({ p: 'read' }, 'p'), [403, 404])
  assert.deepEqual(await rightsOf({ p: 'write' }, 'q'), [403, 403])
  assert.deepEqual(await rightsOf({ '*': 'read', p: 'write' }, 'p'), [200, 404])
  assert.deepEqual(await rightsOf({ '*': 'read', p: 'write' }, 'q'), [403, 404])
  assert.deepEqual(await rightsOf({ '*': 'write', p: 'read' }, 'p'), [200, 404])
  assert.deepEqual(await rightsOf({}, 'p'), [403, 403])
})

everySide(
  '"a project exists from its first stored object. On an unknown project diff answers all false and reads answer 404"',
  async (side) => {
    const diff = async (): Promise<unknown> => (await side.ask(`/api/diff/${side.project}`, contractList(['a']))).json()
    for (const path of ['/a', '/a/single'])
      assert.equal((await errorOf(await side.ask(`/objects/${side.project}${path}`))).status, 404)
    assert.deepEqual(await diff(), { a: false })
    await store(side, [])
    assert.deepEqual(await diff(), { a: false })
    await store(side, [{ id: 'a' }])
    assert.deepEqual(await diff(), { a: true })
  },
)

test('"a project exists from its first stored object", and is listed from then on', async (t) => {
  const service = opened(t)
  const listed = async (): Promise<string[]> => {
    const ids: string[] = []
    for await (const batch of service.projects()) ids.push(...batch)
    return ids
  }
  await service.fetch(new Request('http://x/api/diff/p', contractList(['a']))).then(async (answer) => answer.text())
  await service.fetch(new Request('http://x/objects/p', jsonUpload([]))).then(async (answer) => answer.text())
  assert.deepEqual(await listed(), [])
  await service
    .fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }])))
    .then(async (answer) => answer.text())
  assert.deepEqual(await listed(), ['p'])
})

/** A host that mounts the service beside pages of its own. */
async function host(t: TestContext, options: Partial<stowage.CommonServiceOptions<unknown>>): Promise<string> {
  const service = opened(t, { prefix: '/models', ...options })
  const server = createServer((req, res) => {
    service.node(req, res, (error) => {
      res.statusCode = 299
      res.end(error === undefined ? 'a page of the host' : `the host was told: ${(error as StowageError).code}`)
    })
  })
  return (await listenUntilEnd(t, server)).url
}

test('"an unmatched path calls next(); a matched one is always answered and failures also go to onError"', async (t) => {
  const told: string[] = []
  const url = await host(t, { onError: ({ code }) => told.push(code) })
  for (const path of [
    '/',
    '/model',
    '/modelsobjects/p/a',
    '/objects/p/a',
    '/models',
    '/models/other',
    '/models/objects/p/a/twice',
  ]) {
    assert.equal(await (await fetch(`${url}${path}`)).text(), 'a page of the host', path)
  }
  assert.deepEqual(told, [])
  assert.equal((await errorOf(await fetch(`${url}/models/objects/p/a`))).code, 'not_found')
  assert.equal((await errorOf(await fetch(`${url}/models/objects/p`))).code, 'method_not_allowed')
  assert.deepEqual(told, ['not_found', 'method_not_allowed'])
})

test('"errors: \'next\' hands over errors before the headers as StowageError"', async (t) => {
  const url = await host(t, { errors: 'next' })
  assert.equal(await (await fetch(`${url}/models/objects/p/a`)).text(), 'the host was told: not_found')
  const service = opened(t, { errors: 'next' })
  await assert.rejects(service.fetch(new Request('http://x/objects/p/a')), { name: 'StowageError', statusCode: 404 })
})

test('"one table lists every code with its status: 400, 401, 403, 404, 405, 406, 409, 413, 415, 416, 500, 503, 507", and others beside these', () => {
  const statuses = [...new Set<number>(Object.values(ERROR_STATUS))].sort((a, b) => a - b)
  const beside = new Set([408, 412, 417, 429, 431, 501])
  assert.deepEqual(
    statuses.filter((status) => !beside.has(status)),
    [400, 401, 403, 404, 405, 406, 409, 413, 415, 416, 500, 503, 507],
  )
})

/** A request whose path is sent as it is: `fetch` would resolve `..`. */
async function rawGet(
  url: string,
  path: string,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const [answer] = (await once(request(url, { path }).end(), 'response')) as [IncomingMessage]
  return { status: answer.statusCode, body: await text(answer) }
}

test('"mounts match the raw URL, split it, then decode each segment once; ids with %2F, %252F, single, and of 512 bytes work everywhere"', async (t) => {
  const service = opened(t, { prefix: '/a/b' })
  const { url, close } = await listening(service)
  t.after(close)
  const ids = [
    'a/b',
    '%2F',
    'single',
    '..',
    '.',
    '%',
    '%41',
    '+',
    'a?b=c#d',
    '"',
    'é',
    'x'.repeat(512),
    '/objects/p/x/single',
    ' ',
    '\\',
    '%00',
  ]
  for (const project of ['p/q', '%2F', 'single', 'x'.repeat(128)]) {
    const [inPath, member] = [encodeURIComponent(project), ids.map((id) => ({ id }))]
    assert.equal((await fetch(`${url}/a/b/objects/${inPath}`, jsonUpload(member))).status, 200)
    for (const id of ids) {
      const path = `/a/b/objects/${inPath}/${encodeURIComponent(id)}`
      assert.deepEqual(await rawGet(url, `${path}/single`), { status: 200, body: JSON.stringify({ id }) }, path)
      assert.deepEqual(await rawGet(url, path), { status: 200, body: JSON.stringify([{ id }]) }, path)
    }
    const listed = await fetch(`${url}/a/b/api/getobjects/${inPath}`, idList(ids))
    assert.equal(((await listed.json()) as unknown[]).length, ids.length)
  }
})

everySide(
  '"?archive=gzip answers the same bytes as Content-Type: application/gzip without the encoding", resumed with Range and If-Range',
  async (side) => {
    await store(
      side,
      Array.from({ length: 200 }, (_, n) => ({
        id: n === 0 ? 'root' : `${n}`,
        to: { referencedId: `${n + 1}` },
        data: randomBytes(600).toString('base64'),
      })),
    )
    const path = `/objects/${side.project}/root?archive=gzip`
    const whole = await planned(side, path, { headers: { 'Accept-Encoding': 'identity' } })
    assert.deepEqual(
      [whole.headers.get('content-type'), whole.headers.get('content-encoding')],
      ['application/gzip', null],
    )
    const bytes = Buffer.from(await whole.arrayBuffer())
    assert.equal(whole.headers.get('content-length'), String(bytes.length))
    const plain = await side.ask(`/objects/${side.project}/root`, {
      headers: { Accept: 'text/plain', 'Accept-Encoding': 'identity' },
    })
    assert.equal(gunzipSync(bytes).toString(), await plain.text())
    const headers = { Range: 'bytes=1000-', 'If-Range': whole.headers.get('etag') ?? '' }
    const isAsked = async (): Promise<boolean> => (rest = await side.ask(path, { headers })).status === 206
    let rest = whole
    if (SHARED_ENGINES === undefined) assert.ok(await isAsked())
    else await eventually(isAsked, 'each server has made the plan')
    assert.deepEqual(Buffer.from(await rest.arrayBuffer()), bytes.subarray(1_000))
  },
)

everySide(
  '"/single is immutable: Cache-Control: private, max-age=31536000, immutable, Vary: Authorization"',
  async (side) => {
    await store(side, [{ id: 'a' }])
    const { headers } = await side.ask(`/objects/${side.project}/a/single`)
    assert.equal(headers.get('cache-control'), 'private, max-age=31536000, immutable')
    assert.match(headers.get('vary') ?? '', /\bAuthorization\b/)
  },
)

/** Values and types, the names behind `as` among them. */
function publicNames(): string[] {
  const exported = [...readSource('src/index.ts').text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)]
  return exported
    .flatMap(([, list]) => list.split(','))
    .map((entry) => entry.trim().split(' ').at(-1) ?? '')
    .filter((name) => name !== '')
}

test('"no public name equals a global of the DOM library", nor one of Node', () => {
  const domTypes = readFileSync(
    join(dirname(createRequire(import.meta.url).resolve('@tsd/typescript')), 'lib.dom.d.ts'),
    'utf8',
  )
  const globals = new Set(
    [...domTypes.matchAll(/^(?:declare (?:var|function)|interface|type) (\w+)/gm)].map(([, name]) => name),
  )
  assert.ok(globals.has('Storage') && globals.has('Request'))
  const names = publicNames()
  assert.ok(
    names.includes('createObjectService') &&
      names.includes('ObjectRecord') &&
      Object.keys(stowage).every((name) => names.includes(name)),
  )
  assert.deepEqual(
    names.filter((name) => globals.has(name) || name in globalThis),
    [],
  )
})

test('"two services in one process do not meet; a second service over the same backend instance is an error"', async (t) => {
  const [one, two] = [opened(t), opened(t)]
  await one.fetch(new Request('http://x/objects/p', jsonUpload([{ id: 'a' }]))).then(async (answer) => answer.text())
  assert.equal((await two.fetch(new Request('http://x/objects/p/a/single'))).status, 404)
  await two.close()
  assert.equal((await one.fetch(new Request('http://x/objects/p/a/single'))).status, 200)
  const backend = memoryBackend()
  const first = createObjectService({ backend, access: openAccess() })
  assert.throws(() => createObjectService({ backend, access: openAccess() }), TypeError)
  await first.close()
})

test('"Express, Koa and Hono need none": hosts and databases of others are no dependencies', () => {
  const { dependencies } = JSON.parse(readSource('package.json').text) as { dependencies: Record<string, string> }
  const needed = ['@fastify/busboy', 'jose', 'level', 'minizlib', 'stream-json']
  for (const name of needed) assert.ok(name in dependencies, name)
  assert.ok(
    Object.keys(dependencies).every((name) => !/express|koa|fastify$|^pg$|aws|prom-client/.test(name)),
    Object.keys(dependencies).join(),
  )
  // The pages are rendered by its JSX; its servers are hosts like all others.
  const users = readSources(['src', 'adapters'])
    .filter(({ text }) => /from 'hono/.test(text))
    .map(({ path }) => path)
  assert.deepEqual(
    users.filter((path) => !path.startsWith('src/pages/')),
    [],
  )
})
