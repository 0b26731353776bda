import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { automation } from '../../src/automation-server/index.ts'
import { type Access, openAccess } from '../../src/index.ts'
import { pages, storedSessionKeys } from '../../src/pages/index.ts'
import { eventually } from '../support/patience.ts'
import { definition, inProcess, waiting } from '../automation-server/support.ts'
import { paged, signedIn, textOf, tokenFor, Visitor, withVersion } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

const HOURS_12_MS = 12 * 3_600_000

class MovedClock {
  addedMs = 0

  now(): number {
    return Date.now() + this.addedMs
  }
}

async function cookieFor(
  t: TestContext,
  prefix: string | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  const { service } = paged(t, { service: { prefix } })
  const { headers: answered, status } = await new Visitor(service).post(
    `${prefix ?? ''}/web/sign-in`,
    { token: await tokenFor({ p: 'read' }) },
    headers,
  )
  assert.equal(status, 303)
  return answered.get('set-cookie') ?? ''
}

test('the cookie is sealed, for this service only, and out of reach of scripts and other sites', async (t) => {
  const plain = { 'sec-fetch-site': 'same-origin', origin: 'http://stowage.test' }
  const secure = { ...plain, origin: 'https://stowage.test' }
  const cases = [
    [undefined, plain, /^stowage-session=([\w.-]+); Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/],
    ['/models', plain, /^stowage-session=([\w.-]+); Max-Age=43200; Path=\/models; HttpOnly; SameSite=Strict$/],
    [
      undefined,
      secure,
      /^__Host-stowage-session=([\w.-]+); Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    ],
    [
      '/models',
      secure,
      /^__Secure-stowage-session=([\w.-]+); Max-Age=43200; Path=\/models; HttpOnly; Secure; SameSite=Strict$/,
    ],
  ] as const
  for (const [prefix, headers, expected] of cases) {
    const cookie = await cookieFor(t, prefix, headers)
    assert.match(cookie, expected)
    const [, sealed] = expected.exec(cookie) ?? []
    assert.deepEqual(JSON.parse(Buffer.from(sealed.split('.')[0], 'base64url').toString()), {
      alg: 'dir',
      enc: 'A256GCM',
    })
  }
})

test("a token that is not a person's cannot sign in", async (t) => {
  const { service } = paged(t)
  const cases = [
    ['', /Paste a token to sign in\./],
    ['two words', /This is not a token/],
    ['<script>alert(1)</script>', /This is not a token/],
    ['x'.repeat(10_000), /This is not a token/],
    ['nonsense', /This token is not valid here, or not any more\./],
    [`${await tokenFor({ p: 'read' })}x`, /This token is not valid here/],
  ] as const
  for (const [token, message] of cases) {
    const { status, html, headers } = await new Visitor(service).post('/web/sign-in', { token })
    assert.equal(status, 422, token)
    assert.match(textOf(html), message)
    assert.match(html, /aria-invalid="true"/)
    assert.equal(headers.get('set-cookie'), null)
    assert.ok(token.length < 5 || !html.includes(token), 'a token is not sent back')
  }
})

test('the token of a run opens no page', async (t) => {
  let runToken = ''
  const executor = inProcess(async ({ runFile }, stopped) => {
    runToken = runFile.speckleToken
    await stopped
  })
  const parts = paged(t, { functions: [definition(executor)] })
  const { modelId } = await withVersion(parts)
  const { automations, runs } = parts.extension.project('p')
  const { id } = await automations.create({ name: 'a', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' })
  await runs.start(id)
  await eventually(async () => runToken !== '', 'the run has its token')
  const visitor = new Visitor(parts.service)
  assert.equal((await visitor.post('/web/sign-in', { token: runToken })).status, 422)
  assert.equal((await visitor.get('/web', { authorization: `Bearer ${runToken}` })).status, 403)
})

test('signing in leads to the requested page and to no other site', async (t) => {
  const { service } = paged(t, { service: { prefix: '/m' } })
  const token = await tokenFor({ p: 'read' })
  const asked = await new Visitor(service).get('/m/web/projects/p/runs?status=failed')
  assert.equal(asked.status, 401)
  assert.match(asked.headers.get('www-authenticate') ?? '', /^Bearer/)
  assert.match(asked.html, /name="next" value="\/m\/web\/projects\/p\/runs\?status=failed"/)
  const leads = async (next: string): Promise<string | null> =>
    (await new Visitor(service).post('/m/web/sign-in', { token, next })).headers.get('location')
  assert.equal(await leads('/m/web/projects/p/runs?status=failed'), '/m/web/projects/p/runs?status=failed')
  for (const next of [
    '',
    '/',
    'https://evil.test/m/web',
    '//evil.test/m/web',
    '/m/webevil',
    '/m/web/\\evil',
    '/m/web/a\r\nSet-Cookie: a=b',
    '/web',
  ])
    assert.equal(await leads(next), '/m/web', next)
})

test('a link signs in once, within five minutes, and only when its button is pressed', async (t) => {
  const clock = new MovedClock()
  const { service, web } = paged(t, { service: { prefix: '/m', clock } })
  const token = await tokenFor({ p: 'read' })
  const link = await web.signInLink({ token })
  assert.match(link, /^\/m\/web\/sign-in\?code=[\w-]{43}$/)
  const code = new URL(link, 'http://stowage.test').searchParams.get('code') ?? ''
  for (const looked of [await new Visitor(service).get(link), await new Visitor(service).get(link)]) {
    assert.equal(looked.status, 200)
    assert.ok(!looked.html.includes(token))
    assert.equal(looked.headers.get('set-cookie'), null)
  }
  const visitor = new Visitor(service)
  assert.equal((await visitor.post('/m/web/sign-in', { code })).headers.get('location'), '/m/web')
  assert.equal((await visitor.get('/m/web')).status, 200)
  assert.match(
    (await new Visitor(service).post('/m/web/sign-in', { code })).html,
    /This link was used already, or is older than five minutes/,
  )
  const late = new URL(await web.signInLink({ token }), 'http://stowage.test').searchParams.get('code') ?? ''
  clock.addedMs = 300_001
  assert.equal((await new Visitor(service).post('/m/web/sign-in', { code: late })).status, 422)
})

test('the cookie grants no API access, except for events of a run and files', async (t) => {
  const parts = paged(t, {
    functions: [
      definition(
        inProcess(async ({ backend }, stopped) => {
          await backend.storeArtifact({
            name: 'a.csv',
            content: (async function* () {
              yield Buffer.from('a;b')
            })(),
            sizeBytes: 3,
            idempotencyKey: 'a',
          })
          await stopped
        }),
      ),
    ],
  })
  const { modelId } = await withVersion(parts)
  const { automations, runs } = parts.extension.project('p')
  const { id } = await automations.create({ name: 'a', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' })
  const run = await runs.start(id)
  await eventually(async () => (await runs.get(run.id)).artifacts.length === 1, 'its file is there')
  const visitor = await signedIn(parts.service)
  const api = '/api/v1/projects/p'
  for (const path of [
    `${api}/models`,
    `${api}/runs/${run.id}`,
    `${api}/runs/${run.id}/annotations`,
    '/objects/p/root/single',
    '/objects/p/root',
  ])
    assert.equal((await visitor.get(path)).status, 401, path)
  for (const path of [`${api}/runs/${run.id}/cancel`, `${api}/automations/${id}/runs`, `${api}/runs/${run.id}/events`])
    assert.equal((await visitor.post(path)).status, path.endsWith('events') ? 405 : 401, path)
  const [artifact] = (await runs.get(run.id)).artifacts
  const file = await visitor.get(`${api}/artifacts/${artifact.id}`)
  assert.deepEqual([file.status, file.html, file.headers.get('x-content-type-options')], [200, 'a;b', 'nosniff'])
  assert.match(file.headers.get('content-disposition') ?? '', /^attachment/)
  const foreign: readonly Readonly<Record<string, string>>[] = [
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { authorization: 'Bearer nonsense' },
  ]
  for (const headers of foreign) {
    assert.equal((await visitor.get(`${api}/artifacts/${artifact.id}`, headers)).status, 401, JSON.stringify(headers))
  }
  const events = visitor.get(`${api}/runs/${run.id}/events`)
  await runs.cancel(run.id)
  assert.equal((await events).status, 200)
  assert.match((await events).html, /event: status\nid: .+\ndata: .*canceled/)
  assert.equal(
    (await (await signedIn(parts.service, { other: 'write' })).get(`${api}/artifacts/${artifact.id}`)).status,
    403,
  )
})

test('a session ends with its time, with its token, at sign-out, and if its cookie is damaged', async (t) => {
  const clock = new MovedClock()
  const { service } = paged(t, { service: { clock } })
  const visitor = await signedIn(service)
  const damaged = `${visitor.cookie.slice(0, -3)}AAA`
  assert.equal((await visitor.get('/web')).status, 200)
  const lost = await new Visitor(service).get('/web', { cookie: damaged })
  assert.equal(lost.status, 401)
  assert.match(
    lost.headers.get('set-cookie') ?? '',
    /^stowage-session=; Max-Age=0; Path=\/; HttpOnly; SameSite=Strict$/,
  )
  const kept = visitor.cookie
  const out = await visitor.post('/web/sign-out')
  assert.deepEqual([out.status, out.headers.get('location'), visitor.cookie], [303, '/web/sign-in', ''])
  clock.addedMs = HOURS_12_MS + 1_000
  assert.equal((await new Visitor(service).get('/web', { cookie: kept })).status, 401)
})

test('sessions survive a restart with the same key, and end with another key', async (t) => {
  const folder = temporaryFolder(t)
  const key = await storedSessionKeys(folderCredentials(folder))
  const path = join(folder, 'access/session-key')
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.deepEqual(await storedSessionKeys(folderCredentials(folder)), key)
  const { cookie } = await signedIn(paged(t, { pages: { sessionKeys: key } }).service)
  assert.equal(
    (await new Visitor(paged(t, { pages: { sessionKeys: key } }).service).get('/web', { cookie })).status,
    200,
  )
  assert.equal((await new Visitor(paged(t).service).get('/web', { cookie })).status, 401)
  await writeFile(path, 'nothing')
  await assert.rejects(storedSessionKeys(folderCredentials(folder)), {
    code: 'corrupt_data',
    message: /session-key is not a key.*Remove it to get a new one/,
  })
})

test('after a session key changes, cookies of the older key stay valid until they expire', async (t) => {
  const [first, second] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]
  const { cookie } = await signedIn(paged(t, { pages: { sessionKeys: [first] } }).service)
  const statusWith = async (sessionKeys: readonly Uint8Array[]): Promise<number> =>
    (await new Visitor(paged(t, { pages: { sessionKeys } }).service).get('/web', { cookie })).status
  assert.deepEqual(await Promise.all([[second, first], [second]].map(statusWith)), [200, 401])
  const { cookie: newer } = await signedIn(paged(t, { pages: { sessionKeys: [second, first] } }).service)
  const { service } = paged(t, { pages: { sessionKeys: [second] } })
  assert.equal((await new Visitor(service).get('/web', { cookie: newer })).status, 200, 'the first key seals')
})

test('with a sign-in address of the host, signed-out visitors are redirected there', async (t) => {
  const { service } = paged(t, { pages: { signInUrl: '/login' } })
  const visitor = new Visitor(service)
  const { status, headers } = await visitor.get('/web/projects/p?tab=1')
  assert.deepEqual([status, headers.get('location')], [303, '/login?next=%2Fweb%2Fprojects%2Fp%3Ftab%3D1'])
  const programs = await service.fetch(new Request('http://in.process/api/v1/projects/p/models'))
  assert.equal(programs.status, 401, 'programs are told as before')
  const { cookie } = await signedIn(service)
  assert.equal((await new Visitor(service).get('/web', { cookie })).status, 200)
  const auto = automation()
  for (const signInUrl of ['', 'login', '//evil.example', 'javascript:alert(1)', '/lo gin'])
    assert.throws(() => pages({ automation: auto, signInUrl }), { name: 'TypeError', message: /signInUrl is/ })
})

test('a host that authenticates its own users needs no sign-in', async (t) => {
  const access: Access<unknown> = {
    ...openAccess(),
    authenticate: ({ headers }) =>
      headers.get('x-user') === null ? undefined : { subject: 'Grace', projects: { p: 'read' } },
  }
  const { service } = paged(t, { service: { access } })
  const shown = await new Visitor(service).get('/web', { 'x-user': 'grace' })
  assert.equal(shown.status, 200)
  assert.match(shown.html, /Grace/)
  assert.doesNotMatch(shown.html, /Sign out/)
  assert.equal((await new Visitor(service).get('/web')).status, 401)
})

test('forms are accepted only from our own pages', async (t) => {
  const parts = paged(t, { functions: [definition(waiting)] })
  const { modelId } = await withVersion(parts)
  const { automations, runs } = parts.extension.project('p')
  const { id } = await automations.create({ name: 'a', functionId: 'checker', modelId, inputs: {}, trigger: 'manual' })
  const visitor = await signedIn(parts.service)
  const own = 'http://stowage.test'
  const cases: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
    [{ 'sec-fetch-site': 'same-origin', origin: own }, 303],
    [{ 'sec-fetch-site': 'same-origin' }, 303],
    [{ origin: own }, 303],
    [{ origin: 'HTTP://STOWAGE.test' }, 303],
    [{}, 403],
    [{ referer: `${own}/web` }, 403],
    [{ 'sec-fetch-site': 'none' }, 403],
    [{ 'sec-fetch-site': 'same-site', origin: own }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: own }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: 'null' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'http://evil.test' }, 403],
    [{ origin: `${own}.evil.test` }, 403],
    [{ origin: `${own}:8080` }, 403],
    [{ origin: 'http://evil@stowage.test' }, 403],
    [{ 'sec-fetch-site': 'same-origin', origin: 'http://evil.test' }, 403],
  ]
  for (const [headers, expected] of cases)
    assert.equal(
      (await visitor.post(`/web/projects/p/automations/${id}/run`, {}, headers)).status,
      expected,
      JSON.stringify(headers),
    )
  assert.equal((await runs.list()).items.length, 4)
  for (const path of [
    '/web/sign-in',
    '/web/sign-out',
    `/web/projects/p/automations/${id}/delete`,
    `/web/projects/p/automations/${id}/edit`,
    '/web/projects/p/functions/checker/new',
  ]) {
    assert.equal(
      (await visitor.post(path, {}, { 'sec-fetch-site': 'cross-site', origin: 'http://evil.test' })).status,
      403,
      path,
    )
  }
  assert.equal((await automations.list()).items.length, 1)
})

test('behind a proxy that changes Host, the origin must be configured', async (t) => {
  const { service } = paged(t, { pages: { origin: 'https://models.example' } })
  const signIn = async (origin: string): Promise<number> =>
    (await new Visitor(service).post('/web/sign-in', { token: await tokenFor({ p: 'read' }) }, { origin })).status
  assert.deepEqual(
    [
      await signIn('https://models.example'),
      await signIn('http://models.example'),
      await signIn('http://stowage.test'),
    ],
    [303, 403, 403],
  )
})

test('scripts and images of other sites load no page, but links of other sites open one', async (t) => {
  const visitor = await signedIn(paged(t).service)
  const from = async (site: string, mode: string, dest: string): Promise<number> =>
    (await visitor.get('/web', { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest })).status
  assert.deepEqual(
    [
      await from('cross-site', 'cors', 'empty'),
      await from('cross-site', 'no-cors', 'image'),
      await from('same-site', 'navigate', 'iframe'),
    ],
    [403, 403, 403],
  )
  assert.deepEqual(
    [
      await from('none', 'navigate', 'document'),
      await from('cross-site', 'navigate', 'document'),
      await from('same-origin', 'cors', 'empty'),
    ],
    [200, 200, 200],
  )
})

test('invalid options are refused', async () => {
  const auto = automation()
  assert.throws(() => pages({ automation: auto, sessionKeys: [new Uint8Array(31)] }), {
    name: 'TypeError',
    message: /a key of sessionKeys has 31 bytes/,
  })
  assert.throws(() => pages({ automation: auto, sessionKeys: [] }), {
    name: 'TypeError',
    message: /sessionKeys is empty/,
  })
  for (const origin of ['models.example', 'https://models.example/', 'https://models.example/web'])
    assert.throws(() => pages({ automation: auto, origin }), { name: 'TypeError', message: /origin is/ })
  for (const sessionMs of [0, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => pages({ automation: auto, sessionMs }), { name: 'RangeError', message: /sessionMs is/ })
  await assert.rejects(pages({ automation: auto }).signInLink({ token: 'x' }), {
    name: 'TypeError',
    message: /have no service yet/,
  })
})
