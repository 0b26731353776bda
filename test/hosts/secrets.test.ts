import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { type Access, claimAuthorize } from '../../src/index.ts'
import { filePart, multipartUpload } from '../contract/sides.ts'
import { openService } from '../http/served.ts'
import { ask, type Answered, type Sent } from '../mounts/ask.ts'
import { HOSTS, listen } from '../mounts/hosts.ts'

/* Case 21 through every mount: a secret in each place where a request can have one, and line ends in each place where somebody could write them down. */

const SECRET = 'hunter2-the-secret'
const PREFIX = '/models'
const CARRIED: Readonly<Record<string, string>> = {
  authorization: `Bearer ${SECRET}`,
  cookie: `session=${SECRET}`,
  'x-api-key': SECRET,
  'proxy-authorization': `Basic ${Buffer.from(SECRET).toString('base64')}`,
}
const JSON_TYPE = { 'content-type': 'application/json' }
/** What would begin a line of its own, or a command of a terminal, where it is written as it is. */
const BREAKING = ['%0d%0aset-cookie:%20a=b', '%0A', '%1b[31m', '%C2%85', '%E2%80%A8', 'a%0Ab']
const CONTROL = /[\p{Cc}\u2028\u2029]/u

const post = (
  path: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): Sent => ({ method: 'POST', path: `${path}?token=${SECRET}`, headers: { ...CARRIED, ...headers }, body })
const get = (path: string, headers: Readonly<Record<string, string>> = {}): Sent => ({
  path: `${path}?token=${SECRET}`,
  headers: { ...CARRIED, ...headers },
})

const parts = multipartUpload([{ ...filePart('[{"id":"a"},', 'application/json') }])
const WRONG_BODIES = [
  '[{"id":"a","password":"SECRET"',
  '[{"id":"a"}, SECRET]',
  '[{"id":"a","x":SECRET}]',
  '{"id":"a","x":"SECRET\\q"}',
  '"SECRET"',
  'SECRET',
  '[["SECRET"]]',
  '[{"id":"a\\r\\nb","x":"SECRET"}]',
  '[{"id":"a","SECRET":tru}]',
].map((text) => text.replace('SECRET', SECRET))

const SENTS: readonly Sent[] = [
  ...WRONG_BODIES.flatMap((body) => [
    post('/objects/p', body),
    post('/objects/p', gzipSync(body), { 'content-type': 'application/gzip' }),
    post('/api/diff/p', body),
    post('/api/getobjects/p', body),
    post('/api/v2/projects/p/object-stream', body),
  ]),
  post('/objects/p', parts.body, { 'content-type': 'multipart/form-data; boundary=a-boundary-of-tests' }),
  post('/objects/p', parts.body, { 'content-type': `multipart/form-data; boundary=${SECRET}` }),
  post('/objects/p', '[]', { 'content-type': 'text/html\tx' }),
  post('/objects/p', '[]', { ...JSON_TYPE, 'content-encoding': 'br\tx' }),
  post('/objects/p', '[{"id":"a"}]', { ...JSON_TYPE, 'x-request-id': 'a\tb "<script>' }),
  post('/objects/full', '[{"id":"a"}]'),
  post('/objects/forbidden', '[{"id":"a"}]'),
  get('/objects/broken/a'),
  get('/objects/p/none', {
    accept: 'image/png\tx',
    range: 'bytes=\t9-',
    'if-match': '"\t"',
    origin: 'https://x.example',
  }),
  get('/objects/p/none', { authorization: `Bearer ${SECRET}\tx` }),
  ...BREAKING.flatMap((text) => [
    get(`/objects/p/${text}`),
    get(`/objects/${text}/a`),
    get(`/objects/p/${text}/single`),
    post(`/objects/${text}`, '[{"id":"a"}]'),
    { path: `/objects/p/a?have=${text}&archive=${text}`, headers: CARRIED },
  ]),
  { method: 'DELETE', path: `/objects/p?token=${SECRET}`, headers: CARRIED },
]

/** Knows one bearer of this secret, and says it aloud when it fails. */
const access: Access<unknown> = {
  authenticate: ({ headers, path }) => {
    if (path.includes('broken')) throw new Error(`the accounts are away, asked with ${headers.get('authorization')}`)
    return headers.get('authorization') === CARRIED.authorization
      ? { subject: 'ada', projects: { p: 'write', full: 'read' } }
      : undefined
  },
  authorize: claimAuthorize,
}

function tellsNothing({ headers, body }: Answered, what: string): void {
  assert.doesNotMatch(
    body + JSON.stringify(headers),
    new RegExp(`${SECRET}|${Buffer.from(SECRET).toString('base64')}`),
    what,
  )
  assert.doesNotMatch(Buffer.from(body, 'latin1').toString(), CONTROL, what)
  for (const value of Object.values(headers)) assert.doesNotMatch(value, CONTROL, what)
  assert.doesNotMatch(headers['content-type'] ?? '', /html/, what)
  assert.equal(headers['set-cookie'], undefined)
}

for (const host of HOSTS) {
  void test(`case 21: ${host.name}: secrets and line ends of requests appear in no response, log line or error`, async (t) => {
    const told: string[] = []
    const log = (fields: unknown, message: unknown): void =>
      void told.push(inspect(fields, { depth: 0 }), String(message))
    const service = openService({
      access,
      logger: { error: log },
      onError: ({ message, headers, code }, { requestId }) =>
        void told.push(message, JSON.stringify(headers), code, requestId),
    })
    t.after(() => service.close({ graceMs: 0 }))
    const port = await listen(t, await host.open(service, PREFIX), service)
    for (const sent of SENTS) tellsNothing(await ask(port, sent, PREFIX), `${sent.method ?? 'GET'} ${sent.path}`)
    assert.ok(told.length > SENTS.length, 'errors were told of')
    for (const text of told.filter((line) => !line.includes('the accounts are away'))) {
      assert.ok(!text.includes(SECRET), text)
      assert.doesNotMatch(text.replaceAll(/\n +at .*|\n/g, ''), CONTROL)
    }
  })
}
