import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ClientError } from '../../src/client/index.ts'
import {
  type Access,
  type AccessRefusals,
  claimAuthorize,
  createObjectService,
  ERROR_STATUS,
  jwtAccess,
  openAccess,
  type Principal,
  StowageError,
  type ServiceErrorCode,
} from '../../src/index.ts'
import { errorAnswer, toStowageError } from '../../src/http/error-answer.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { type Ask, bothCores, errorOf, idList, jsonUpload } from './served.ts'

const PRINCIPALS: Readonly<Record<string, Principal>> = {
  'Bearer reader': { subject: 'r', projects: { p: 'read' } },
  'Bearer writer': { subject: 'w', projects: { p: 'write' } },
  'Bearer other': { subject: 'o', projects: { q: 'write' } },
}
const access: Access<unknown> = {
  authenticate: ({ headers }) => PRINCIPALS[headers.get('authorization') ?? ''],
  authorize: claimAuthorize,
}

const REQUESTS: readonly {
  readonly path: string
  readonly init: RequestInit
  readonly right: 'read' | 'write'
  readonly ok: number
}[] = [
  { path: '/objects/p', init: jsonUpload([{ id: 'a' }]), right: 'write', ok: 200 },
  { path: '/api/diff/p', init: idList(['a']), right: 'write', ok: 200 },
  { path: '/objects/p/a', init: {}, right: 'read', ok: 200 },
  { path: '/objects/p/a/single', init: {}, right: 'read', ok: 200 },
  { path: '/api/getobjects/p', init: idList(['a']), right: 'read', ok: 200 },
  { path: '/api/v2/projects/p/object-stream', init: idList(['a'], 'objectIds'), right: 'read', ok: 200 },
]

function withToken(init: RequestInit, token: string | undefined): RequestInit {
  return {
    ...init,
    headers: {
      ...(init.headers as Record<string, string>),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
  }
}

test('every endpoint authenticates and authorizes, over both cores', async (t) => {
  for (const [core, ask] of await bothCores(t, () => ({ access }))) {
    for (const { path, init, right, ok } of REQUESTS) {
      const where = `${core} ${path}`
      const anonymous = await ask(path, withToken(init, undefined))
      assert.equal(anonymous.headers.get('www-authenticate'), 'Session realm="stowage"', where)
      assert.deepEqual((await errorOf(anonymous)).code, 'unauthenticated', where)
      const wrong = await ask(path, withToken(init, 'nobody'))
      assert.equal((await errorOf(wrong)).status, 401, where)
      assert.equal((await errorOf(await ask(path, withToken(init, 'other')))).code, 'forbidden', where)
      assert.equal((await ask(path, withToken(init, 'writer'))).status, ok, where)
      assert.equal((await ask(path, withToken(init, 'reader'))).status, right === 'read' ? 200 : 403, where)
    }
  }
})

test('refusals mention a token where tokens exist, and the host where it authenticates', async (t) => {
  const keys = new Uint8Array(32).fill(7)
  const tokens = jwtAccess({ keys, issuer: 'i', audience: 'a', algorithms: ['HS256'] })
  const refusals: AccessRefusals<unknown> = {
    unauthenticated: () => ({ message: 'sign in at /login', challenge: 'Cookie realm="house"' }),
    forbidden: ({ subject }, projectId, right) => `${subject} may not ${right} ${projectId}`,
  }
  const refusedBy = async (
    chosen: Access<unknown>,
    headers: Record<string, string> = {},
  ): Promise<[number, string, string | null]> => {
    const [, [, ask]] = await bothCores(t, () => ({ access: chosen }))
    const answer = await ask('/objects/p/a', { headers })
    const challenge = answer.headers.get('www-authenticate')
    const { status, message } = await errorOf(answer)
    return [status, message, challenge]
  }
  const asked = 'a token is needed in the header "Authorization: Bearer <token>"'
  assert.deepEqual(await refusedBy(tokens), [401, asked, 'Bearer realm="stowage"'])
  assert.deepEqual(await refusedBy(tokens, { authorization: 'Bearer x.y.z' }), [
    401,
    'the token in the Authorization header is not valid',
    'Bearer realm="stowage", error="invalid_token"',
  ])
  const nobody = { authenticate: () => undefined, authorize: () => false }
  assert.deepEqual(await refusedBy(nobody), [401, 'this request is not signed in', 'Session realm="stowage"'])
  assert.deepEqual(await refusedBy({ ...nobody, refusals }), [401, 'sign in at /login', 'Cookie realm="house"'])
  const ada = { authenticate: () => ({ subject: 'ada' }), authorize: () => false }
  assert.deepEqual(await refusedBy(ada), [403, 'the right to read in this project is missing', null])
  assert.deepEqual(await refusedBy({ ...ada, refusals }), [403, 'ada may not read p', null])
})

test('access is checked before the contents of the request and of the project', async (t) => {
  const [, [, ask]] = await bothCores(t, () => ({ access }))
  const broken = { method: 'POST', body: '[', headers: { 'content-type': 'application/json' } }
  assert.equal((await errorOf(await ask('/objects/p', withToken(broken, 'reader')))).status, 403)
  for (const path of ['/objects/p/nothing', '/objects/nowhere/nothing', '/objects/p/nothing/single']) {
    assert.equal((await errorOf(await ask(path, withToken({}, 'other')))).status, 403)
    assert.equal(
      (await errorOf(await ask(path, withToken({ headers: { 'if-none-match': '*', accept: 'image/png' } }, undefined))))
        .status,
      401,
    )
  }
})

test('an unknown project is empty', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    assert.deepEqual(
      await (await ask('/api/diff/new', idList(['a', '__proto__']))).text(),
      '{"a":false,"__proto__":false}',
      core,
    )
    assert.equal((await errorOf(await ask('/objects/new/a'))).code, 'not_found', core)
    assert.equal((await errorOf(await ask('/objects/new/a/single'))).code, 'not_found', core)
    // A list holds what there is of it, wherever; one thing that there is not is 404.
    const list = await ask('/api/getobjects/new', idList(['a', 'b']))
    assert.deepEqual([list.headers.get('stowage-missing-objects'), await list.json()], ['2', []], core)
  }
})

const BAD: readonly (readonly [string, RequestInit, ServiceErrorCode])[] = [
  [
    '/objects/p',
    { method: 'POST', body: '[{"id":"a"},]', headers: { 'content-type': 'application/json' } },
    'invalid_json',
  ],
  ['/objects/p', { method: 'POST', body: '[1]', headers: { 'content-type': 'application/json' } }, 'invalid_object'],
  ['/objects/p', { method: 'POST', body: '[]', headers: { 'content-type': 'text/html' } }, 'unsupported_media_type'],
  [
    '/objects/p',
    { method: 'POST', body: gzipSync('[]').subarray(0, 15), headers: { 'content-type': 'application/gzip' } },
    'invalid_gzip',
  ],
  [
    '/api/diff/p',
    { method: 'POST', body: '{"objects":7}', headers: { 'content-type': 'application/json' } },
    'invalid_request',
  ],
  ['/api/v2/projects/p/object-stream', idList([], 'objectIds'), 'invalid_request'],
  [
    '/api/getobjects/p',
    { ...idList(['a']), headers: { 'content-type': 'application/json', accept: 'image/png' } },
    'not_acceptable',
  ],
  ['/objects/p/a', { headers: { 'accept-encoding': 'identity;q=0' } }, 'not_acceptable'],
  [`/objects/p/a?${'have=b&'.repeat(101)}`, {}, 'invalid_request'],
  ['/objects/p/a?have=%00', {}, 'invalid_id'],
]

test('invalid requests get errors of one shape, over both cores', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    for (const [path, init, code] of BAD) {
      const answer = await ask(path, init)
      assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8', core)
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', core)
      assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f]{32}$/, core)
      const error = await errorOf(answer)
      assert.deepEqual([error.code, error.status], [code, ERROR_STATUS[code]], `${core} ${path}`)
    }
  }
})

test('a failed upload stores nothing, and 201 is an option', async (t) => {
  for (const [core, ask] of await bothCores(t, () => ({ uploadStatus: 201 }))) {
    await (
      await ask('/objects/p', {
        method: 'POST',
        body: '[{"id":"a"},{"id":"b"}',
        headers: { 'content-type': 'application/json' },
      })
    ).arrayBuffer()
    assert.deepEqual(await (await ask('/api/diff/p', idList(['a', 'b']))).json(), { a: false, b: false }, core)
    const created = await ask('/objects/p', jsonUpload([{ id: 'a' }, { n: 1 }]))
    assert.equal(created.status, 201, core)
    const summary = (await created.json()) as { assigned: { id: string }[] }
    assert.match(summary.assigned[0].id, /^[0-9a-f]{32}$/)
    assert.deepEqual(
      summary,
      {
        objects: 2,
        created: 2,
        differing: 0,
        rewritten: 0,
        assigned: [{ part: 0, index: 1, id: summary.assigned[0].id }],
        assignedCount: 1,
      },
      core,
    )
  }
})

test('a valid request id is repeated, and any other is replaced', async (t) => {
  for (const [core, ask] of await bothCores(t, () => ({ newId: counter() }))) {
    const idOf = async (sent?: string): Promise<string | null> =>
      (await ask('/nothing', sent === undefined ? {} : { headers: { 'x-request-id': sent } })).headers.get(
        'x-request-id',
      )
    assert.equal(await idOf('abc-123:4'), 'abc-123:4', core)
    assert.match((await idOf('<script>')) ?? '', /^[0-9a-f]{32}$/, core)
    assert.match((await idOf('x'.repeat(129))) ?? '', /^[0-9a-f]{32}$/, core)
    assert.match((await idOf()) ?? '', /^[0-9a-f]{32}$/, core)
  }
})

function counter(): () => string {
  let count = 0
  return () => (++count).toString(16).padStart(32, '0')
}

class FailingStore extends PlainObjectStore {
  readonly error: unknown

  constructor(error: unknown) {
    super()
    this.error = error
  }

  override has(): Promise<readonly boolean[]> {
    return Promise.reject(this.error)
  }
}

/** As another copy of the package makes it: `instanceof` does not know it. */
class ErrorOfCopy extends Error {
  override readonly name = 'StowageError'
  readonly code = 'storage_unavailable'
  readonly statusCode = 503
  readonly isRetryable = true
  readonly headers = {}
  toJSON(): object {
    return { message: this.message, statusCode: this.statusCode, code: this.code }
  }
}

test('a server failure is reported to the host, not to the client', async () => {
  const secret = new Error('password=hunter2 in /srv/data')
  const cases: readonly (readonly [unknown, ServiceErrorCode])[] = [
    [secret, 'internal'],
    [Object.assign(new Error('full'), { code: 'ENOSPC' }), 'storage_full'],
    [new Error('wrapped', { cause: Object.assign(new Error('files'), { code: 'EMFILE' }) }), 'overloaded'],
    [new StowageError('storage_unavailable', 'the storage is gone'), 'storage_unavailable'],
    [new ClientError('not_found', 'http://hunter2.internal answered 404', { statusCode: 404 }), 'internal'],
    [new ErrorOfCopy('the storage of another copy is gone'), 'storage_unavailable'],
  ]
  for (const [thrown, code] of cases) {
    const told: StowageError[] = []
    const logged: unknown[] = []
    const service = createObjectService({
      store: new FailingStore(thrown),
      access: openAccess(),
      logger: { error: (fields) => logged.push(fields), warn: (fields) => logged.push(fields) },
      onError: (error) => {
        told.push(error)
        throw new Error('a listener that fails')
      },
    })
    const answer = await service.fetch(new Request('http://x/api/diff/p', idList(['a'])))
    const error = await errorOf(answer)
    assert.deepEqual([error.code, error.status], [code, ERROR_STATUS[code]])
    assert.ok(!JSON.stringify(error).includes('hunter2'))
    if (error.status === 503) assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(told.length, 1)
    assert.equal(told[0] === thrown ? thrown : told[0].cause, thrown)
    assert.equal(logged.length, 2, code)
    await service.close()
  }
})

test('every thrown value becomes a StowageError', () => {
  for (const thrown of [undefined, null, 'text', 7, {}, new Error('x')])
    assert.equal(toStowageError(thrown).code, 'internal')
  const known = new StowageError('not_found', 'x')
  assert.equal(toStowageError(known), known)
  assert.equal(
    toStowageError(new StowageError('internal', 'x', { cause: Object.assign(new Error('e'), { code: 'EDQUOT' }) }))
      .code,
    'storage_full',
  )
  const endless = new Error('loop')
  endless.cause = endless
  assert.equal(toStowageError(endless).code, 'internal')
  assert.equal(
    errorAnswer(new StowageError('overloaded', 'x', { headers: { 'Retry-After': '2' } })).headers['Retry-After'],
    '2',
  )
})

test('CORS, if enabled, applies to every route', async (t) => {
  const origin = 'https://viewer.example'
  for (const [core, ask] of await bothCores(t, () => ({ cors: { origins: [origin], credentials: true } }))) {
    const preflight = (path: string, from: string): Promise<Response> =>
      ask(path, {
        method: 'OPTIONS',
        headers: {
          origin: from,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization, content-type',
        },
      })
    for (const { path, init } of REQUESTS) {
      const { headers, status } = await preflight(path, origin)
      assert.equal(status, 204, core)
      assert.equal(headers.get('access-control-allow-origin'), origin, core)
      assert.equal(headers.get('access-control-allow-credentials'), 'true', core)
      assert.equal(headers.get('access-control-allow-headers'), 'authorization, content-type', core)
      assert.ok((headers.get('access-control-allow-methods') ?? '').includes(init.method ?? 'GET'), core)
      assert.equal(
        (await preflight(path, 'https://evil.example')).headers.get('access-control-allow-origin'),
        null,
        core,
      )
    }
    await exposes(ask, origin, core)
  }
})

async function exposes(ask: Ask, origin: string, core: string): Promise<void> {
  await (await ask('/objects/p', jsonUpload([{ id: 'a' }]))).arrayBuffer()
  const graph = await ask('/objects/p/a', { headers: { origin } })
  assert.match(graph.headers.get('access-control-expose-headers') ?? '', /Stowage-Missing-Objects/, core)
  assert.match(graph.headers.get('vary') ?? '', /Accept.*Origin/, core)
  const missing = await ask('/objects/p/none', { headers: { origin } })
  assert.deepEqual([missing.status, missing.headers.get('access-control-allow-origin')], [404, origin], core)
}

test('invalid options are refused at once', () => {
  const store = new PlainObjectStore()
  assert.throws(
    () => createObjectService({ store, access: openAccess(), cors: { origins: '*', credentials: true } }),
    TypeError,
  )
  const withOrigin = (origin: string): unknown =>
    createObjectService({ store, access: openAccess(), cors: { origins: [origin] } })
  for (const [origin, message] of [
    ['https://a.example/', /must be "https:\/\/a\.example"/],
    ['https://A.example', /must be "https:\/\/a\.example"/],
    ['http://a.example:80', /must be "http:\/\/a\.example"/],
    ['a.example', /must be like/],
    ['*', /must be like/],
    ['', /must be like/],
    ['https://a.example/path', /must be "https:\/\/a\.example"/],
  ] as const)
    assert.throws(
      () => withOrigin(origin),
      (error: Error) => error instanceof TypeError && message.test(error.message),
      origin,
    )
  for (const origin of [
    'https://a.example:8443',
    'http://localhost:5173',
    'http://[::1]:81',
    'chrome-extension://abcdef',
    'null',
  ])
    withOrigin(origin)
  assert.throws(() => createObjectService({ store, access: openAccess(), prefix: '/a?b' }), TypeError)
  assert.throws(() => createObjectService({ store, access: openAccess(), limits: { objectBytesMax: 0 } }), RangeError)
})
