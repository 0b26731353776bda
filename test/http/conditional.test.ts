import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { isUnmodified, requestedRange } from '../../src/http/conditional.ts'
import { StowageError } from '../../src/index.ts'
import { eventually } from '../support/patience.ts'
import { type Ask, bothCores, errorOf, jsonUpload } from './served.ts'

const ETAG = '"digest-text-gzip"'

const rangeOf = (range: string, ifRange?: string): string => {
  try {
    const found = requestedRange(
      new Headers({ range, ...(ifRange === undefined ? {} : { 'if-range': ifRange }) }),
      ETAG,
      100,
    )
    return found === undefined ? 'whole' : `${found.start}-${found.end}`
  } catch (error) {
    assert.ok(error instanceof StowageError)
    assert.equal(error.headers['Content-Range'], 'bytes */100')
    return String(error.statusCode)
  }
}

test('ranges follow RFC 9110 section 14', () => {
  const expected: readonly (readonly [string, string])[] = [
    ['bytes=0-0', '0-1'],
    ['bytes=10-19', '10-20'],
    ['bytes=90-', '90-100'],
    ['bytes=90-1000', '90-100'],
    ['bytes=-10', '90-100'],
    ['bytes=-1000', '0-100'],
    ['BYTES = 1 - 2', '1-3'],
    ['bytes=100-', '416'],
    ['bytes=100-200', '416'],
    ['bytes=-0', '416'],
    ['bytes=5-4', 'whole'],
    ['bytes=0-1,5-6', 'whole'],
    ['items=0-1', 'whole'],
    ['bytes=-', 'whole'],
    ['bytes=a-b', 'whole'],
    ['bytes=', 'whole'],
    ['bytes=0x1-2', 'whole'],
  ]
  for (const [range, outcome] of expected) assert.equal(rangeOf(range), outcome, range)
  assert.equal(rangeOf('bytes=1-2', ETAG), '1-3')
  for (const stale of ['"other"', `W/${ETAG}`, 'Sat, 21 Nov 2026 09:00:00 GMT'])
    assert.equal(rangeOf('bytes=1-2', stale), 'whole', stale)
})

test('entity tags compare by RFC 9110 section 13', () => {
  const unmodified = (value: string): boolean => isUnmodified(new Headers({ 'if-none-match': value }), ETAG)
  for (const value of [ETAG, `W/${ETAG}`, '*', `"a", ${ETAG}`, `"a,b" ,${ETAG}`]) assert.ok(unmodified(value), value)
  for (const value of ['"other"', 'digest-text-gzip', '']) assert.ok(!unmodified(value), value)
})

const MODEL = [
  { id: 'root', children: [1, 2, 3].map((n) => ({ referencedId: `c${n}` })) },
  ...[1, 2, 3].map((n) => ({ id: `c${n}`, text: `${n}`.repeat(4_000) })),
]

/** Uploads the model and asks once more until its plan is there, which fixes every byte. */
async function plannedModel(ask: Ask): Promise<void> {
  await (await ask('/objects/p', jsonUpload(MODEL))).arrayBuffer()
  await eventually(
    async () => (await ask('/objects/p/root', { method: 'HEAD' })).headers.has('etag'),
    'the graph has a plan',
  )
}

const VARIANTS: readonly { readonly path: string; readonly headers: Readonly<Record<string, string>> }[] = [
  { path: '/objects/p/root', headers: { accept: 'text/plain', 'accept-encoding': 'gzip' } },
  { path: '/objects/p/root', headers: { accept: 'text/plain', 'accept-encoding': 'identity' } },
  { path: '/objects/p/root', headers: { accept: 'application/json', 'accept-encoding': 'identity' } },
  { path: '/objects/p/root?archive=gzip', headers: {} },
]

test('a planned graph has a length, a tag, conditions and ranges, over both cores', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await plannedModel(ask)
    const tags = new Set<string>()
    for (const { path, headers } of VARIANTS) {
      const where = `${core} ${path} ${JSON.stringify(headers)}`
      const get = (more: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
        ask(path, { method, headers: { ...headers, ...more } })
      const head = await get({}, 'HEAD')
      const etag = head.headers.get('etag') ?? ''
      assert.match(etag, /^"[^",]+"$/, where)
      assert.equal(head.headers.get('accept-ranges'), 'bytes', where)
      assert.match(head.headers.get('stowage-closure') ?? '', /^[0-9a-f]{16,}$/, where)
      tags.add(`${etag} ${path}`)
      const length = Number(head.headers.get('content-length'))
      const fresh = await get({ 'if-none-match': etag })
      assert.deepEqual([fresh.status, await fresh.text(), fresh.headers.get('etag')], [304, '', etag], where)
      assert.equal((await errorOf(await get({ 'if-match': '"other"' }))).code, 'precondition_failed', where)
      assert.equal((await get({ 'if-match': etag }, 'HEAD')).status, 200, where)
      const beyond = await get({ range: `bytes=${length}-` })
      assert.equal(beyond.headers.get('content-range'), `bytes */${length}`, where)
      assert.equal((await errorOf(beyond)).code, 'range_not_satisfiable', where)
      assert.equal((await get({ range: 'bytes=0-1', 'if-range': '"other"' }, 'HEAD')).status, 200, where)
    }
    assert.equal(tags.size, VARIANTS.length)
  }
})

test('a body resumed with Range and If-Range equals the whole body', async (t) => {
  const [, [, ask]] = await bothCores(t)
  await plannedModel(ask)
  const text = MODEL.map((object) => `${object.id}\t${JSON.stringify(object)}\n`)
  for (const { path, headers } of VARIANTS) {
    const whole = await ask(path, { headers })
    const bytes = Buffer.from(await whole.arrayBuffer())
    assert.equal(bytes.length, Number(whole.headers.get('content-length')), path)
    const etag = whole.headers.get('etag') ?? ''
    for (const cut of [1, 9, 10, 11, Math.floor(bytes.length / 2), bytes.length - 1]) {
      const rest = await ask(path, { headers: { ...headers, range: `bytes=${cut}-`, 'if-range': etag } })
      assert.equal(rest.status, 206, path)
      assert.equal(rest.headers.get('content-range'), `bytes ${cut}-${bytes.length - 1}/${bytes.length}`)
      assert.ok(Buffer.from(await rest.arrayBuffer()).equals(bytes.subarray(cut)), `${path} from ${cut}`)
    }
    const isGzip = path.includes('archive') || whole.headers.get('content-encoding') === 'gzip'
    const body = (isGzip ? gunzipSync(bytes) : bytes).toString()
    if (headers.accept === 'application/json')
      assert.deepEqual((JSON.parse(body) as { id: string }[]).map(({ id }) => id).sort(), ['c1', 'c2', 'c3', 'root'])
    else assert.deepEqual(body.split(/(?<=\n)/).sort(), [...text].sort())
    assert.ok(body.slice(0, 7).includes('root') || body.startsWith('[{"id":"root"'), 'the root comes first')
  }
})

test('an archive has its own length and tag', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', jsonUpload([{ id: 'a' }, { id: 'b"/\\' }]))).arrayBuffer()
    const named = await ask('/objects/p/a?archive=gzip')
    assert.equal(named.headers.get('content-type'), 'application/gzip', core)
    assert.equal(named.headers.get('content-encoding'), null, core)
    assert.equal(named.headers.get('content-disposition'), 'attachment; filename="a.txt.gz"', core)
    assert.equal(gunzipSync(Buffer.from(await named.arrayBuffer())).toString(), 'a\t{"id":"a"}\n', core)
    const hostile = await ask(`/objects/p/${encodeURIComponent('b"/\\')}?archive=gzip`, { method: 'HEAD' })
    assert.equal(hostile.headers.get('content-disposition'), 'attachment; filename="objects.txt.gz"', core)
    assert.equal((await errorOf(await ask('/objects/p/a?archive=zip'))).code, 'invalid_request', core)
  }
})

test('have omits objects of the client and reports how it was applied', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await plannedModel(ask)
    const closure = (await ask('/objects/p/root', { method: 'HEAD' })).headers.get('stowage-closure') ?? ''
    const second = { id: 'second', children: [{ referencedId: 'c1' }, { referencedId: 'c4' }] }
    await (await ask('/objects/p', jsonUpload([second, { id: 'c4' }]))).arrayBuffer()
    const ids = async (query: string): Promise<readonly string[]> =>
      ((await (await ask(`/objects/p/second?${query}`)).json()) as { id: string }[]).map(({ id }) => id)
    assert.deepEqual([...(await ids(''))].sort(), ['c1', 'c4', 'second'], core)
    assert.deepEqual(await ids(`have=root@${closure}`), ['second', 'c4'], core)
    const answer = await ask(
      `/objects/p/second?have=root@${closure}&have=nobody&have=root@${'0'.repeat(closure.length)}`,
    )
    assert.equal(answer.headers.get('stowage-have'), 'root;subtracted, nobody;unknown, root;digest-mismatch', core)
    await answer.arrayBuffer()
  }
})

test('strict answers 409 with the missing ids', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', jsonUpload([{ id: 'root', c: { referencedId: 'gone' } }]))).arrayBuffer()
    const lax = await ask('/objects/p/root')
    assert.equal(lax.headers.get('stowage-missing-objects'), '1', core)
    await lax.arrayBuffer()
    const strict = await ask('/objects/p/root?strict')
    assert.equal(strict.status, 409, core)
    const body = (await strict.json()) as { code: string; ids: string[]; message: string }
    assert.deepEqual([body.code, body.ids], ['objects_missing', ['gone']], core)
    assert.match(body.message, /^1 of the objects .*"gone"/, core)
  }
})

test('a single object is immutable and has a strong tag', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', jsonUpload([{ id: 'a', text: 'x'.repeat(3_000) }]))).arrayBuffer()
    const plain = await ask('/objects/p/a/single', { headers: { 'accept-encoding': 'identity' } })
    assert.equal(plain.headers.get('cache-control'), 'private, max-age=31536000, immutable', core)
    const etag = plain.headers.get('etag') ?? ''
    assert.match(etag, /^"[0-9a-f]{32}-identity"$/, core)
    await plain.arrayBuffer()
    const zipped = await ask('/objects/p/a/single', { method: 'HEAD', headers: { 'accept-encoding': 'gzip' } })
    assert.equal(zipped.headers.get('etag'), etag.replace('identity', 'gzip'), core)
    assert.equal(
      (await ask('/objects/p/a/single', { headers: { 'accept-encoding': 'identity', 'if-none-match': etag } })).status,
      304,
      core,
    )
    assert.equal((await errorOf(await ask('/objects/p/b/single'))).code, 'not_found', core)
  }
})
