import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { negotiateCoding, negotiateFormat } from '../../src/http/negotiate.ts'
import { StowageError } from '../../src/index.ts'
import { bothCores, idList, jsonUpload } from './served.ts'

const outcome = (negotiate: (headers: Headers) => string, name: string, value: string | undefined): string => {
  try {
    return negotiate(new Headers(value === undefined ? {} : { [name]: value }))
  } catch (error) {
    assert.ok(error instanceof StowageError)
    return String(error.statusCode)
  }
}

test('Accept selects JSON, the default, or text', () => {
  const expected: readonly (readonly [string | undefined, string])[] = [
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/json', 'json'],
    ['APPLICATION/JSON', 'json'],
    ['application/*', 'json'],
    ['text/plain', 'text'],
    ['text/*', 'text'],
    ['text/plain;charset=UTF-8', 'text'],
    ['text/html, text/plain', 'text'],
    ['application/json;q=0.5, text/plain', 'text'],
    ['text/plain;q=0.5, application/json', 'json'],
    ['text/plain;q=0.4, */*;q=0.8', 'json'],
    ['text/plain;q=0, */*', 'json'],
    ['application/json;q=0, */*', 'text'],
    ['application/json;q=0', '406'],
    ['text/html', '406'],
    ['image/*, text/plain;q=0', '406'],
  ]
  for (const [accept, format] of expected)
    assert.equal(outcome(negotiateFormat, 'accept', accept), format, String(accept))
})

test('Accept-Encoding selects gzip, which wins ties, or identity, the default', () => {
  const expected: readonly (readonly [string | undefined, string])[] = [
    [undefined, 'identity'],
    ['', 'identity'],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['*', 'gzip'],
    ['identity, gzip', 'gzip'],
    ['gzip;q=0.5, identity;q=0.5', 'gzip'],
    ['identity', 'identity'],
    ['gzip;q=0.5, identity', 'identity'],
    ['gzip;q=0', 'identity'],
    ['br', 'identity'],
    ['br, zstd;q=0.1', 'identity'],
    ['gzip, deflate, br', 'gzip'],
    ['identity;q=0, gzip', 'gzip'],
    ['gzip, *;q=0', 'gzip'],
    ['br, *;q=0.1', 'gzip'],
    ['identity;q=0', '406'],
    ['*;q=0', '406'],
    ['gzip;q=0, identity;q=0', '406'],
    ['br, *;q=0', '406'],
  ]
  for (const [accept, coding] of expected)
    assert.equal(outcome(negotiateCoding, 'accept-encoding', accept), coding, String(accept))
})

test('each read declares its format and coding', async (t) => {
  const [, [, ask]] = await bothCores(t)
  const objects = [
    { id: 'root', child: { referencedId: 'leaf' } },
    { id: 'leaf', n: 1 },
  ]
  await (await ask('/objects/p', jsonUpload(objects))).arrayBuffer()
  const text = objects.map((object) => `${object.id}\t${JSON.stringify(object)}\n`).join('')
  const list = idList(['root', 'leaf', 'root'])
  for (const [path, init] of [
    ['/objects/p/root', {}],
    ['/api/getobjects/p', list],
  ] as const) {
    for (const accept of ['application/json', 'text/plain']) {
      for (const coding of ['identity', 'gzip']) {
        const answer = await ask(path, {
          ...init,
          headers: { 'content-type': 'application/json', accept, 'accept-encoding': coding },
        })
        const bytes = Buffer.from(await answer.arrayBuffer())
        const body = (coding === 'gzip' ? gunzipSync(bytes) : bytes).toString()
        assert.equal(body, accept === 'text/plain' ? text : JSON.stringify(objects), `${path} ${accept} ${coding}`)
        assert.equal(answer.headers.get('content-type'), `${accept}; charset=utf-8`)
        assert.equal(answer.headers.get('content-encoding'), coding === 'gzip' ? 'gzip' : null)
        assert.equal(answer.headers.get('vary'), 'Accept, Accept-Encoding, Authorization')
        assert.equal(answer.headers.get('cache-control'), 'private, no-cache')
        assert.equal(answer.headers.get('stowage-missing-objects'), '0')
      }
    }
  }
})

test('diff, upload and single return JSON regardless of Accept, because clients that want lines send it everywhere', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    const headers = { accept: 'text/plain', 'content-type': 'application/json' }
    assert.equal(
      (await ask('/objects/p', { ...jsonUpload([{ id: 'a', s: '1\n2' }]), headers })).headers.get('content-type'),
      'application/json; charset=utf-8',
      core,
    )
    assert.deepEqual(
      await (await ask('/api/diff/p', { ...idList(['a', 'b']), headers })).json(),
      { a: true, b: false },
      core,
    )
    assert.equal(
      await (await ask('/objects/p/a/single', { headers: { accept: 'text/plain' } })).text(),
      '{"id":"a","s":"1\\n2"}',
      core,
    )
  }
})

test('a single object is compressed if that is smaller, or if nothing else is allowed', async (t) => {
  const [, [, ask]] = await bothCores(t)
  await (await ask('/objects/p', jsonUpload([{ id: 'small' }, { id: 'large', text: 'x'.repeat(5_000) }]))).arrayBuffer()
  const coded = async (id: string, accepted: string): Promise<string | null> => {
    const answer = await ask(`/objects/p/${id}/single`, { headers: { 'accept-encoding': accepted } })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const coding = answer.headers.get('content-encoding')
    assert.equal((JSON.parse((coding === 'gzip' ? gunzipSync(bytes) : bytes).toString()) as { id: string }).id, id)
    return coding
  }
  assert.equal(await coded('small', 'gzip'), null)
  assert.equal(await coded('large', 'gzip'), 'gzip')
  assert.equal(await coded('large', 'br'), null)
  assert.equal(await coded('small', 'gzip, identity;q=0'), 'gzip')
})
