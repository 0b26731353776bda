import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { applyDelta, DELTA_MEDIA_TYPE, parseDelta } from '../../src/delta/delta.ts'
import type { Access, AccessRight } from '../../src/index.ts'
import { closureText, encodeDelta } from '../delta/support.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { type Ask, bothCores, jsonUpload, openService } from './served.ts'

const BYTES_MAX = 10_485_760

interface Answered {
  readonly status: number
  readonly code?: string
  readonly message?: string
  readonly created?: number
}

function deltaUpload(elements: readonly string[], isGzip = false): RequestInit {
  const body = `[${elements.join()}]`
  const headers = { 'content-type': DELTA_MEDIA_TYPE }
  return {
    method: 'POST',
    ...(isGzip ? { headers: { ...headers, 'content-encoding': 'gzip' }, body: gzipSync(body) } : { headers, body }),
  }
}

async function answered(ask: Ask, path: string, init?: RequestInit): Promise<Answered> {
  const answer = await ask(path, init)
  return { status: answer.status, ...((await answer.json()) as object) }
}

/** An object with its own id, and closures like those of models. */
function versionText(id: string, isOther: (at: number) => boolean): string {
  return closureText(200, isOther).replace('{"id":"0"', `{"id":"${id}"`)
}

const OLD = versionText('old', () => false)
const NEW = versionText('new', (at) => at === 7)
const DELTA = encodeDelta('old', OLD, NEW) as string

function rawUpload(json: string): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: json }
}

test('objects upload as deltas on held objects, beside whole ones, and are stored like any other', async (t) => {
  for (const isGzip of [false, true]) {
    for (const [core, ask] of await bothCores(t)) {
      await (await ask('/objects/p', rawUpload(`[${OLD}]`))).arrayBuffer()
      const { status, created } = await answered(
        ask,
        '/objects/p',
        deltaUpload(
          ['{"id":"whole"}', DELTA, encodeDelta('old', OLD, OLD.replace('"old"', '"third"')) as string],
          isGzip,
        ),
      )
      assert.deepEqual({ status, created }, { status: 200, created: 3 }, core)
      assert.equal(await (await ask('/objects/p/new/single')).text(), NEW, core)
      assert.equal(await (await ask('/objects/p/third/single')).text(), OLD.replace('"old"', '"third"'), core)
    }
  }
})

test('a malformed delta or one for another base is refused with the place, and nothing is stored', async (t) => {
  const huge = JSON.stringify([
    'old',
    0,
    ...Array.from({ length: 20 }, () => [0, OLD.length, ''])
      .flatMap(([, copy]) => [0, copy, ''])
      .map((step, at) => (at % 3 === 0 && at > 0 ? -OLD.length : step)),
  ])
  const refusals: readonly [string, number, string, RegExp][] = [
    ['["old","x"]', 400, 'invalid_delta', /CRC-32.*; send the object whole \(part 0, element 1\)/],
    ['[]', 400, 'invalid_delta', /the id of its base/],
    [
      DELTA.replace('["old"', '["nowhere"'),
      409,
      'base_mismatch',
      /the base "nowhere" of a delta is not held; send the object whole \(part 0, element 1\)/,
    ],
    [DELTA.replace('["old"', '["other"'), 409, 'base_mismatch', /CRC-32|copies bytes/],
    [DELTA.replace('["old"', '["\\u0001"'), 400, 'invalid_id', /./],
    [huge, 413, 'object_too_large', /the result of a delta \(part 0, element 1\)/],
    ['7', 400, 'invalid_object', /./],
    ['["old', 400, 'invalid_json', /./],
  ]
  for (const [core, ask] of await bothCores(t, () => ({ limits: { objectBytesMax: OLD.length * 10 } }))) {
    await (await ask('/objects/p', rawUpload(`[${OLD},{"id":"other"}]`))).arrayBuffer()
    for (const [element, status, code, message] of refusals) {
      const got = await answered(ask, '/objects/p', deltaUpload(['{"id":"whole"}', element]))
      assert.deepEqual([got.status, got.code], [status, code], `${core}: ${element.slice(0, 40)}`)
      assert.match(got.message ?? '', message)
    }
    assert.equal((await answered(ask, '/objects/p/whole/single')).status, 404, core)
    assert.equal(
      (await answered(ask, '/objects/p', rawUpload(`[${DELTA}]`))).code,
      'invalid_object',
      'a delta is one only where the media type says so',
    )
  }
})

test('the work of one upload is bounded, however small its deltas are', async (t) => {
  for (const [core, ask] of await bothCores(t, () => ({ limits: { inflatedBytesMax: OLD.length * 5 } }))) {
    await (await ask('/objects/p', rawUpload(`[${OLD}]`))).arrayBuffer()
    const many = Array.from(
      { length: 6 },
      (_, at) => encodeDelta('old', OLD, OLD.replace('"old"', `"${at}"`)) as string,
    )
    assert.equal((await answered(ask, '/objects/p', deltaUpload(many))).code, 'inflated_too_large', core)
    assert.equal((await answered(ask, '/objects/p', deltaUpload(many.slice(0, 4)))).created, 4, core)
  }
})

test('a writer without the read right cannot send deltas, because checksums would reveal objects', async () => {
  const mayOnlyWrite: Access<unknown> = {
    authenticate: () => ({ subject: 'a' }),
    authorize: (_principal, _projectId, right: AccessRight) => right === 'write',
  }
  const service = openService({ access: mayOnlyWrite })
  const ask = (init: RequestInit): Promise<Response> => service.fetch(new Request('http://x/objects/p', init))
  assert.equal((await ask(rawUpload(`[${OLD}]`))).status, 200)
  assert.equal((await ask(deltaUpload([DELTA]))).status, 403)
  await service.close()
})

test('changed objects download as deltas on request, as text and as a gzip file', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', rawUpload(`[${OLD}]`))).arrayBuffer()
    await (await ask('/objects/p', rawUpload(`[${NEW}]`))).arrayBuffer()
    const path = '/objects/p/new?have=old'
    const whole = await (await ask(path, { headers: { accept: 'text/plain' } })).text()
    assert.equal(whole, `new\t${NEW}\n`, core)
    const answer = await ask(`${path}&delta`, { headers: { accept: 'text/plain' } })
    assert.deepEqual(
      ['stowage-have', 'stowage-objects', 'etag', 'content-type'].map((name) => answer.headers.get(name)),
      ['old;subtracted', '1', null, 'text/plain; charset=utf-8'],
      core,
    )
    const line = await answer.text()
    const [id, delta] = line.trimEnd().split('\t')
    assert.equal(id, 'new')
    assert.ok(line.length < whole.length / 10, `${line.length} of ${whole.length} characters`)
    assert.equal(Buffer.from(applyDelta(parseDelta(delta), Buffer.from(OLD), BYTES_MAX)).toString(), NEW, core)
    const archive = await (await ask(`${path}&delta&archive=gzip`)).arrayBuffer()
    assert.equal(gunzipSync(Buffer.from(archive)).toString(), line, core)
    assert.equal(
      await (await ask('/objects/p/new?delta', { headers: { accept: 'text/plain' } })).text(),
      whole,
      'without have there is no base',
    )
    assert.equal(await (await ask(`${path}&delta`)).text(), `[${NEW}]`, 'an array of objects never holds deltas')
  }
})

test("a host's own store accepts deltas", async () => {
  const service = openService({ store: new PlainObjectStore() })
  const ask: Ask = (path, init) => service.fetch(new Request(`http://x${path}`, init))
  await ask('/objects/p', jsonUpload([JSON.parse(OLD)]))
  assert.equal((await answered(ask, '/objects/p', deltaUpload([DELTA]))).created, 1)
  assert.equal(await (await ask('/objects/p/new/single')).text(), NEW)
  await service.close()
})
