import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createObjectService, DEFAULT_LIMITS, openAccess } from '../../src/index.ts'
import { MB } from '../../src/limits.ts'
import { errorOf, jsonUpload } from '../http/served.ts'
import { openServers } from '../support/several-servers.ts'
import {
  accessOf,
  authorization,
  contractList,
  linesOf,
  onEverySide,
  type Side,
  store,
  tokenFor,
  type Who,
  withHeaders,
} from './sides.ts'

/* The contract, area A, row by row: authentication, errors, limits, versioning. */

const everySide = onEverySide()

interface Endpoint {
  readonly number: number
  readonly right: 'read' | 'write'
  readonly request: (project: string) => readonly [string, RequestInit]
}

/** The five of the contract, as it numbers them. */
const ENDPOINTS: readonly Endpoint[] = [
  { number: 1, right: 'write', request: (project) => [`/api/diff/${project}`, contractList(['a'])] },
  { number: 2, right: 'write', request: (project) => [`/objects/${project}`, jsonUpload([{ id: 'a' }])] },
  { number: 3, right: 'read', request: (project) => [`/objects/${project}/a/single`, {}] },
  { number: 4, right: 'read', request: (project) => [`/api/getobjects/${project}`, contractList(['a'])] },
  { number: 5, right: 'read', request: (project) => [`/objects/${project}/a`, {}] },
]

async function statusFor(side: Side, endpoint: Endpoint, who: Who): Promise<number> {
  const answer = await side.ask(...endpoint.request(side.project), who)
  await answer.arrayBuffer()
  return answer.status
}

async function isError(answer: Response, status: number): Promise<void> {
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/)
  const body = (await answer.json()) as Record<string, unknown>
  assert.deepEqual([answer.status, body.statusCode, typeof body.message], [status, status, 'string'])
}

everySide('Authentication 1: "Every REST endpoint requires a personal access token"', async (side) => {
  await store(side, [{ id: 'a' }])
  for (const endpoint of ENDPOINTS) {
    assert.deepEqual(
      [await statusFor(side, endpoint, 'nobody'), await statusFor(side, endpoint, 'writer')],
      [401, 200],
      `endpoint ${endpoint.number}`,
    )
  }
})

test('Authentication 2: "Authorization with the value Bearer <ACCESS_TOKEN> (HTTP bearer scheme; the token format is declared as JWT)"', async (t) => {
  const secret = randomBytes(32)
  const service = openServers((backend) => createObjectService({ backend, access: accessOf(secret) }))
  t.after(() => service.close())
  const token = await tokenFor(secret, { p: 'write' })
  const statusWith = async (headers: Record<string, string>): Promise<number> => {
    const answer = await service.fetch(new Request('http://x/api/diff/p', contractList(['a'], headers)))
    await answer.arrayBuffer()
    return answer.status
  }
  assert.equal(await statusWith({ Authorization: `Bearer ${token}` }), 200)
  assert.equal(await statusWith({ authorization: `bearer ${token}` }), 200)
  for (const wrong of [
    token,
    `Basic ${token}`,
    `Token ${token}`,
    `Bearer${token}`,
    `Bearer ${token} x`,
    'Bearer',
    'Bearer ',
  ]) {
    assert.equal(await statusWith({ Authorization: wrong }), 401, wrong.slice(0, 12))
  }
  assert.equal(
    (await service.fetch(new Request(`http://x/api/diff/p?access_token=${token}`, contractList(['a'])))).status,
    401,
  )
})

test('Authentication 3: "A missing or invalid token gives 401"', async (t) => {
  const secret = randomBytes(32)
  const service = openServers((backend) => createObjectService({ backend, access: accessOf(secret) }))
  t.after(() => service.close())
  const good = await tokenFor(secret, { p: 'write' })
  const expired = await tokenFor(secret, { p: 'write' }, Math.floor(Date.now() / 1_000) - 1)
  const foreign = await tokenFor(randomBytes(32), { p: 'write' })
  const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${good.split('.')[1]}.`
  for (const endpoint of ENDPOINTS) {
    const [path, init] = endpoint.request('p')
    for (const token of [undefined, expired, foreign, none, `${good.slice(0, -2)}AA`, 'x', 'null']) {
      await isError(await service.fetch(new Request(`http://x${path}`, withHeaders(init, authorization(token)))), 401)
    }
  }
})

everySide(
  'Authentication 4: "A valid token without enough permission gives 403: write permission for diff and upload, read permission for the download endpoints"',
  async (side) => {
    await store(side, [{ id: 'a' }])
    for (const endpoint of ENDPOINTS) {
      assert.equal(
        await statusFor(side, endpoint, 'reader'),
        endpoint.right === 'read' ? 200 : 403,
        `endpoint ${endpoint.number}`,
      )
      assert.equal(await statusFor(side, endpoint, 'stranger'), 403, `endpoint ${endpoint.number}`)
    }
  },
)

everySide(
  'Errors: "Error body shape for 401 and 403: JSON object with message (string) and statusCode (integer)"',
  async (side) => {
    for (const { request } of ENDPOINTS) {
      await isError(await side.ask(...request(side.project), 'nobody'), 401)
      await isError(await side.ask(...request(side.project), 'stranger'), 403)
    }
  },
)

everySide('Errors: "401 | authentication token invalid or missing | all REST endpoints"', async (side) => {
  for (const { request } of ENDPOINTS) {
    const [path, init] = request(side.project)
    await isError(await side.ask(path, withHeaders(init, authorization('x.y.z')), 'nobody'), 401)
    await isError(await side.ask(path, init, 'nobody'), 401)
  }
})

everySide('Errors: "403 | insufficient permissions (write for 1 and 2; read for 3, 4, 5)"', async (side) => {
  for (const { request, right } of ENDPOINTS) {
    if (right === 'write') await isError(await side.ask(...request(side.project), 'reader'), 403)
    await isError(await side.ask(...request(side.project), 'stranger'), 403)
  }
})

everySide('Errors: "404 | object not found | 3 and 5"', async (side) => {
  await store(side, [{ id: 'b' }])
  for (const project of [side.project, `${side.project}-unknown`]) {
    for (const { number, request } of ENDPOINTS) {
      if (number === 3 || number === 5) await isError(await side.ask(...request(project)), 404)
    }
  }
})

test('Errors: "413 | payload too large: request over 50 MB | 2"; Limits: "Size of one object | 10 MB | upload"; over plain http in reliability cases 1 and 2', async (t) => {
  const service = openServers((backend) => createObjectService({ backend, access: openAccess() }))
  t.after(() => service.close({ graceMs: 0 }))
  const upload = (body: string | Buffer): Promise<Response> =>
    service.fetch(new Request('http://x/objects/p', { ...jsonUpload([]), body: body as string }))
  const objectOf = (bytes: number): string => `[{"id":"large","data":"${'x'.repeat(bytes - 24)}"}]`
  await isError(await upload(Buffer.alloc(50 * MB + 1, ' ')), 413)
  await isError(await upload(objectOf(10 * MB + 1)), 413)
  assert.equal((await upload(objectOf(10 * MB))).status, 200)
  assert.equal(
    (await (await service.fetch(new Request('http://x/objects/p/large/single'))).arrayBuffer()).byteLength,
    10 * MB,
  )
})

test('Limits: "Size of one request | 50 MB | upload | hard limit; exceeding gives 413" is the default; reliability case 2 sends it', () => {
  assert.equal(DEFAULT_LIMITS.requestBytesMax, 50 * 1_048_576)
  assert.equal(DEFAULT_LIMITS.objectBytesMax, 10 * 1_048_576)
})

const MANY = Array.from({ length: 3_000 }, (_, n) => ({ id: `${n}`.padStart(32, '0') }))
const ASKED = [...MANY.map(({ id }) => id), ...Array.from({ length: 3_000 }, (_, n) => `absent-${n}`)]

everySide('Limits: "Objects per call | 1000 | diff | recommended maximum", more are answered as well', async (side) => {
  await store(side, MANY)
  const answer = await side.ask(`/api/diff/${side.project}`, contractList(ASKED))
  const held = Object.entries((await answer.json()) as Record<string, boolean>)
  assert.deepEqual(
    held,
    ASKED.map((id) => [id, !id.startsWith('absent')]),
  )
})

everySide(
  'Limits: "Objects per request | 1000 | getobjects | recommended maximum", more are answered as well',
  async (side) => {
    await store(side, MANY)
    const answer = await side.ask(`/api/getobjects/${side.project}`, contractList(ASKED, { Accept: 'text/plain' }))
    assert.equal(answer.headers.get('stowage-missing-objects'), '3000')
    assert.deepEqual(await linesOf(answer), new Map(MANY.map((object) => [object.id, JSON.stringify(object)])))
  },
)

everySide('Versioning: "Paths carry no version segment"', async (side) => {
  await store(side, [{ id: 'a' }])
  for (const { request } of ENDPOINTS) {
    const [path, init] = request(side.project)
    const answer = await side.ask(path, init)
    await answer.arrayBuffer()
    assert.equal(answer.status, 200)
    assert.equal((await errorOf(await side.ask(`/v1${path}`, init))).code, 'route_not_found')
  }
})
