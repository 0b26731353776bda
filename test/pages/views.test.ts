import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { Annotation } from '../../src/automation/index.ts'
import type { RunExecutor } from '../../src/automation-server/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/index.ts'
import { sharing } from '../store/failures.ts'
import { eventually } from '../support/patience.ts'
import { definition, inProcess, reporting, waiting } from '../automation-server/support.ts'
import {
  type Paged,
  paged,
  type PagedOptions,
  type Shown,
  signedIn,
  textOf,
  tokenFor,
  uploadObjects,
  Visitor,
  withVersion,
} from './support.ts'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
const HOSTILE = `<script>alert(1)</script>"'&\u202e\u05d0${'é'.repeat(100)}`
const HOSTILE_ID = '<b>"\'&/..;\u05d0 %2f'

function hostileResult(level: Annotation['level']): Annotation {
  return {
    category: HOSTILE,
    level,
    objectAppIds: { '<i>': HOSTILE, b: null },
    message: `${HOSTILE}\n${'x'.repeat(2_000)}`,
    metadata: { [HOSTILE]: '</pre><script>'.repeat(1_000) },
  }
}

/** Everything that a function can say, in words that mean no good. */
const hostile: RunExecutor = inProcess(async ({ backend, projectId, run: { modelId } }) => {
  const bytes = Buffer.from('x')
  await backend.storeArtifact({
    name: 'a<script>".csv',
    sizeBytes: 1,
    idempotencyKey: 'a',
    content: (async function* () {
      yield bytes
    })(),
  })
  await backend.createVersion({ projectId, modelId, rootObjectId: 'root', message: HOSTILE, idempotencyKey: 'b' })
  const annotations = (['ERROR', 'WARNING', 'INFO', 'SUCCESS'] as const).map(hostileResult)
  await backend.report({
    sequence: 1,
    status: 'failed',
    message: HOSTILE,
    annotations,
    logs: Array.from({ length: 120 }, (_, at) => ({
      atMs: at,
      level: 'error',
      message: `${HOSTILE}${'x'.repeat(2_000)}`,
    })),
  })
})

interface Ran extends Paged {
  readonly automationId: string
  readonly runId: string
  readonly modelId: string
  readonly versionId: string
}

async function ran(
  t: TestContext,
  projectId: string,
  name: string,
  executor: RunExecutor,
  options: PagedOptions = {},
): Promise<Ran> {
  const parts = paged(t, { functions: [definition(executor, { name, description: name })], ...options })
  await uploadObjects(parts.service, projectId, [{ id: 'root' }])
  const { models, versions, automations, runs } = parts.extension.project(projectId)
  const { id: modelId } = await models.create({ name })
  const { id: versionId } = await versions.create(modelId, { rootObjectId: 'root', message: name, source: name })
  const { id: automationId } = await automations.create({
    name,
    functionId: 'checker',
    modelId,
    inputs: { apiKey: 'very secret' },
    trigger: 'manual',
  })
  const { id: runId } = await runs.start(automationId)
  return { ...parts, modelId, versionId, automationId, runId }
}

function linksOf(html: string): readonly string[] {
  const found = [...html.matchAll(/ (?:href|src|action|data-events)="([^"]*)"/g)].map(([, address]) =>
    address.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&#39;', "'"),
  )
  return found.filter((address) => !address.startsWith('#') && address !== 'data:,')
}

/** Opens every page that a link leads to, from the first one on. */
async function crawl(
  visitor: Pick<Visitor, 'get'>,
  start: string,
  looked: (path: string, shown: Shown) => void,
): Promise<ReadonlySet<string>> {
  const seen = new Set([start])
  for (const path of seen) {
    const shown = await visitor.get(path)
    looked(path, shown)
    if (shown.headers.get('content-type')?.startsWith('text/html') !== true) continue
    for (const link of linksOf(shown.html))
      if (!/\/(?:cancel|rerun|run|delete|restore|keep|retention|pins|sign-out|events|web\/projects)$/.test(link))
        seen.add(link.replace(/#.*/, ''))
  }
  return seen
}

function assertPage(path: string, { status, headers, html }: Shown): void {
  assert.equal(status, 200, path)
  if (headers.get('content-type')?.startsWith('text/html') !== true) return
  assert.match(html, /^<!DOCTYPE html><html lang="en">/)
  assert.equal(html.match(/<h1[ >]/g)?.length, 1, `${path} has one heading of the first level`)
  assert.equal(html.match(/<main id="content"/g)?.length, 1)
  const levels = [...html.matchAll(/<h([1-6])[ >]/g)].map(([, level]) => Number(level))
  assert.ok(
    levels.every((level, at) => at === 0 || level <= levels[at - 1] + 1),
    `${path} leaves out no level of headings`,
  )
  const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)
  assert.equal(new Set(ids).size, ids.length, `${path} has each id once`)
  assert.doesNotMatch(html, /<script(?! type="module" src=")|<style| style="| on[a-z]+="|javascript:/)
  assert.deepEqual(
    [
      'content-security-policy',
      'referrer-policy',
      'cache-control',
      'x-content-type-options',
      'cross-origin-opener-policy',
      'cross-origin-resource-policy',
    ].map((name) => headers.get(name)),
    [POLICY, 'same-origin', 'no-store', 'nosniff', 'same-origin', 'same-origin'],
  )
}

test('every linked page exists, regardless of the names on it', async (t) => {
  const { service, extension, runId, automationId, modelId } = await ran(t, HOSTILE_ID, HOSTILE, hostile, {
    service: { prefix: '/m' },
  })
  await eventually(
    async () => (await extension.project(HOSTILE_ID).runs.get(runId)).status === 'failed',
    'it has failed',
  )
  const visitor = new Visitor(service)
  await visitor.signIn(await tokenFor({ [HOSTILE_ID]: 'write' }, HOSTILE), '/m/web')
  const seen = await crawl(visitor, '/m/web', (path, shown) => {
    assertPage(path, shown)
    assert.ok(path.startsWith('/m/web/') || path.startsWith('/m/api/v1/projects/') || path === '/m/web', path)
    assert.doesNotMatch(shown.html, /very secret|<script>|<b>|<i>/)
    assert.ok(!textOf(shown.html).includes('&lt;'), 'nothing is escaped twice')
  })
  const project = `/m/web/projects/${encodeURIComponent(HOSTILE_ID)}`
  const expected = [
    project,
    `${project}/models/${modelId}`,
    `${project}/automations/${automationId}`,
    `${project}/automations/${automationId}/edit`,
    `${project}/functions/checker/new`,
    `${project}/usage`,
    `${project}/collection`,
    `${project}/runs`,
    `${project}/runs/${runId}`,
    `${project}/runs/${runId}/logs`,
    `${project}/runs/${runId}?level=ERROR`,
    `${project}/runs/${runId}?${new URLSearchParams({ category: HOSTILE }).toString()}`,
  ]
  for (const path of expected) assert.ok(seen.has(path), `a link leads to ${path}`)
  const run = textOf((await visitor.get(`${project}/runs/${runId}`)).html)
  for (const words of ['1 Error', '1 Warning', '1 Note', '1 Success', 'a<script>".csv', 'File, 1 bytes', HOSTILE])
    assert.ok(run.includes(words), words)
})

test('below a mount point, all links stay below it', async (t) => {
  const { service } = await ran(t, 'p', 'Check', waiting, { service: { prefix: '/m' } })
  const server = createServer(
    (req, res) =>
      void service.serve({ req, res, mountPoint: '/outer', next: () => res.writeHead(404).end(), host: undefined }),
  )
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as { port: number }
  const fetched = ({ url, method, headers, body }: Request): Promise<Response> => {
    const address = url.replace('http://stowage.test', `http://127.0.0.1:${port}`)
    return fetch(address, {
      method,
      headers: withHost(headers, port),
      redirect: 'manual',
      ...(body === null ? {} : { body, duplex: 'half' }),
    })
  }
  const visitor = new Visitor({ fetch: fetched })
  await visitor.signIn(await tokenFor({ p: 'write' }), '/outer/m/web')
  assert.match((await new Visitor({ fetch: fetched }).get('/outer/m/web')).html, /action="\/outer\/m\/web\/sign-in"/)
  const seen = await crawl(visitor, '/outer/m/web', (path, shown) => {
    assertPage(path, shown)
    assert.ok(
      linksOf(shown.html).every((link) => link.startsWith('/outer/m/')),
      path,
    )
  })
  assert.ok(seen.size > 8, [...seen].join('\n'))
})

function withHost(given: Headers, port: number): Headers {
  const headers = new Headers(given)
  headers.delete('host')
  if (headers.has('origin')) headers.set('origin', `http://127.0.0.1:${port}`)
  return headers
}

test('missing and forbidden pages are HTML for browsers and JSON for other clients', async (t) => {
  const { service, automationId } = await ran(t, 'p', 'Check', waiting)
  const visitor = await signedIn(service)
  const none = '0'.repeat(32)
  const absent = [
    '/web/nothing',
    '/web/projects/p/nothing',
    `/web/projects/p/models/${none}`,
    `/web/projects/p/runs/${none}`,
    `/web/projects/p/runs/${none}/logs`,
    `/web/projects/p/automations/${none}`,
    `/web/projects/p/automations/${none}/edit`,
    '/web/projects/p/functions/nothing/new',
  ]
  for (const path of absent) {
    const { status, html, headers } = await visitor.get(path)
    assert.equal(status, 404, path)
    assert.match(textOf(html), /There is nothing here .* Status 404/)
    assert.equal(headers.get('content-security-policy'), POLICY)
    assert.match(html, /Sign out/)
  }
  const odd: readonly (readonly [string, number])[] = [
    ['/web/projects/p/runs/..%2f', 400],
    ['/web/projects/p/runs?status=odd', 400],
    ['/web/projects/p/runs?cursor=odd', 400],
    ['/web/projects/p?models=odd', 400],
    [`/web/projects/${'x'.repeat(200)}`, 400],
    ['/web/projects/%ff', 400],
    ['/web/projects/other', 403],
    ['/web/projects/other/runs', 403],
  ]
  for (const [path, status] of odd) {
    const shown = await visitor.get(path)
    assert.equal(shown.status, status, path)
    assert.doesNotMatch(shown.html, /<script>/)
  }
  assert.equal((await visitor.get('/web/projects?id=other')).headers.get('location'), '/web/projects/other')
  assert.equal((await visitor.get('/web/projects')).headers.get('location'), '/web')
  assert.match(textOf((await visitor.get('/web/projects?id=')).html), /Enter the id of a project\./)
  const json = await visitor.get(`/web/projects/p/runs/${none}`, { accept: 'application/json' })
  assert.deepEqual([json.status, JSON.parse(json.html).statusCode], [404, 404])
  for (const path of ['/web/', '/web/projects/p/', `/web/projects/p/automations/${automationId}/`])
    assert.equal((await visitor.get(path)).status, 200, path)
})

test('the address of a button leads to the page that has it', async (t) => {
  const { service, automationId, runId } = await ran(t, 'p', 'Check', waiting)
  const visitor = await signedIn(service)
  const [automation, run] = [`/web/projects/p/automations/${automationId}`, `/web/projects/p/runs/${runId}`]
  for (const [path, page] of [
    [`${automation}/run`, automation],
    [`${automation}/delete`, automation],
    [`${run}/cancel`, run],
    [`${run}/rerun/`, run],
    ['/web/sign-out', '/web'],
  ]) {
    const { status, headers } = await visitor.get(path)
    assert.deepEqual([status, headers.get('location')], [303, page])
  }
  assert.equal((await visitor.get(automation)).status, 200, 'and nothing was done')
  assert.equal((await visitor.get('/web')).status, 200)
})

test('the page of an active run reloads without a script, unless that is turned off', async (t) => {
  const { service, extension, runId } = await ran(t, 'p', 'Check', waiting)
  const visitor = await signedIn(service)
  const path = `/web/projects/p/runs/${runId}`
  const going = await visitor.get(path)
  assert.match(going.html, /<noscript><meta http-equiv="refresh" content="4"\/><\/noscript>/)
  assert.match(going.html, new RegExp(`data-events="/api/v1/projects/p/runs/${runId}/events"`))
  assert.match(going.html, /<script type="module" src="\/web\/assets\/live\.[\w-]{16}\.js">/)
  assert.match(textOf(going.html), /Cancel the run/)
  const still = await visitor.get(`${path}?refresh=no`)
  assert.doesNotMatch(still.html, /http-equiv="refresh"/)
  assert.match(still.html, /<script type="module"/)
  const canceled = await visitor.post(`${path}/cancel`)
  assert.deepEqual([canceled.status, canceled.headers.get('location')], [303, path])
  assert.equal((await visitor.post(`${path}/cancel`)).status, 303, 'what has ended has ended')
  const ended = await visitor.get(path)
  assert.doesNotMatch(ended.html, /http-equiv="refresh"|<script|data-events/)
  assert.match(textOf(ended.html), /Canceled .*Run again/)
  const again = await visitor.post(`${path}/rerun`)
  const [latest] = (await extension.project('p').runs.list()).items
  assert.deepEqual([again.status, again.headers.get('location')], [303, `/web/projects/p/runs/${latest.id}`])
  assert.match(
    textOf((await visitor.get(`/web/projects/p/runs/${latest.id}`)).html),
    /as a repetition of an earlier run/,
  )
})

test('long lists are paginated and show only readable items', async (t) => {
  const parts = await ran(t, 'p', 'Check', reporting({ status: 'failed', message: 'no' }))
  const { runs, models } = parts.extension.project('p')
  for (let at = 0; at < 51; at++) await models.create({ name: `Model ${at}` })
  for (let at = 0; at < 51; at++) await runs.start(parts.automationId)
  await withVersion(parts, 'hidden')
  await parts.extension.idle()
  const visitor = await signedIn(parts.service, { p: 'read', empty: 'read' })
  const home = (await visitor.get('/web')).html
  assert.deepEqual(
    linksOf(home).filter((link) => link.startsWith('/web/projects/')),
    ['/web/projects/empty', '/web/projects/p'],
  )
  const next = async (path: string): Promise<string> =>
    / rel="next" href="([^"]+)"/.exec((await visitor.get(path)).html)?.[1].replaceAll('&amp;', '&') ?? ''
  const second = await next('/web/projects/p/runs?status=failed')
  assert.match(second, /^\/web\/projects\/p\/runs\?status=failed&cursor=/)
  assert.match((await visitor.get(second)).html, /Failed/)
  assert.equal(await next(second), '')
  assert.match(await next('/web/projects/p'), /^\/web\/projects\/p\?models=/)
  assert.doesNotMatch(
    (await visitor.get('/web/projects/p')).html,
    /<form(?![^>]*sign-out)/,
    'who may only read gets no buttons',
  )
})

test('the page of a pending run names its reason to wait, and an excess run is refused with a message', async (t) => {
  const backend = memoryBackend()
  const shared = (): StorageBackend => sharing(backend)
  const first = await ran(t, 'p', 'Check', waiting, {
    backend: shared(),
    serverUrl: () => new Promise(() => undefined),
    limits: { pendingRunsMax: 1 },
  })
  const path = `/web/projects/p/runs/${first.runId}`
  const visitor = await signedIn(first.service)
  assert.match(textOf((await visitor.get(path)).html), /Waiting It starts when other runs have ended\./)
  const refused = await visitor.post(`/web/projects/p/automations/${first.automationId}/run`, {})
  assert.equal(refused.status, 409)
  assert.match(
    textOf(refused.html),
    /This cannot be done now The queue of this automation is full \(1 runs\); try again when some have started, or cancel some\./,
  )
  await first.service.close({ graceMs: 0 })
  const without = paged(t, { backend: shared() })
  assert.match(
    textOf((await (await signedIn(without.service)).get(path)).html),
    /Waiting It waits for a server that has the function checker \. This server does not have it\./,
  )
})

test('annotations of several objects are read once', async (t) => {
  const of = (message: string, ids: readonly string[]): Annotation => ({
    category: 'Fire rating',
    level: 'ERROR',
    message,
    objectAppIds: Object.fromEntries(ids.map((id) => [id, null])),
    metadata: null,
  })
  const { service, extension, runId } = await ran(
    t,
    'p',
    'Check',
    reporting({
      status: 'failed',
      message: 'no',
      annotations: [of('none', ['a', 'b']), of('too low', ['c']), of('none', ['b', 'd'])],
    }),
  )
  await extension.idle()
  const plain = textOf((await (await signedIn(service)).get(`/web/projects/p/runs/${runId}`)).html)
  assert.match(
    plain,
    /3 Errors Fire rating 3 Errors on 4 objects none 3 objects, in 2 annotations a b d too low 1 object c/,
  )
})

test('many annotations are paginated, by level and by category', async (t) => {
  const annotations = Array.from({ length: 70 }, (_, at): Annotation => ({
    category: at % 2 === 0 ? 'even' : 'odd',
    level: at < 60 ? 'ERROR' : 'INFO',
    message: `finding ${at}.`,
    objectAppIds: { [`o${at}`]: null },
    metadata: null,
  }))
  const { service, extension, runId } = await ran(
    t,
    'p',
    'Check',
    reporting({ status: 'failed', message: 'no', annotations }),
  )
  await extension.idle()
  const visitor = await signedIn(service)
  const found = async (
    query: string,
  ): Promise<{ readonly findings: number; readonly next: string; readonly plain: string }> => {
    const { html } = await visitor.get(`/web/projects/p/runs/${runId}${query}`)
    const plain = textOf(html)
    return {
      findings: plain.match(/finding \d+\./g)?.length ?? 0,
      plain,
      next: / rel="next" href="[^"?]*(\?[^"#]+)#annotations"/.exec(html)?.[1].replaceAll('&amp;', '&') ?? '',
    }
  }
  const first = await found('')
  assert.equal(first.findings, 50)
  assert.match(first.plain, /60 Errors 10 Notes even 25 Errors on 25 objects in this part of the list/)
  const second = await found(first.next)
  assert.deepEqual([second.findings, second.next], [20, ''])
  assert.match(second.plain, /All annotations/)
  assert.equal((await found('?level=INFO')).findings, 10)
  assert.match((await found('?level=INFO')).plain, /even 5 Notes on 5 objects finding 60\./)
  assert.equal((await found('?category=odd')).findings, 35)
  assert.match((await found('?category=none')).plain, /No annotations match\./)
  assert.equal((await found('?objectId=o3')).findings, 1)
})

test('the stylesheet and the script are cached forever under names that contain their hash', async (t) => {
  const visitor = new Visitor(paged(t).service)
  const style = linksOf((await visitor.get('/web/sign-in')).html).find((link) => link.includes('/assets/')) ?? ''
  assert.match(style, /^\/web\/assets\/style\.[\w-]{16}\.css$/)
  const { status, headers, html } = await visitor.get(style)
  assert.deepEqual(
    [status, headers.get('content-type'), headers.get('cache-control'), headers.get('x-content-type-options')],
    [200, 'text/css; charset=utf-8', 'public, max-age=31536000, immutable', 'nosniff'],
  )
  assert.match(html, /prefers-color-scheme: dark/)
  for (const path of ['/web/assets/style.css', '/web/assets/..%2fassets.ts', '/web/assets/tsconfig.json'])
    assert.equal((await visitor.get(path)).status, 404, path)
})
