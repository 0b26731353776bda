import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type ObjectStreamSelection, decodeIdList, decodeObjectStreamRequest } from '../../src/decode/id-list.ts'
import { type Limits, DEFAULT_LIMITS } from '../../src/limits.ts'
import type { IdSet } from '../../src/object/id-set.ts'
import { processorMs } from '../support/processor.ts'
import { type Sent, codeOf, randomFrom, source } from './support.ts'
import { parseContentType } from '../../src/decode/header-value.ts'

const FORM = 'application/x-www-form-urlencoded'
const signal = new AbortController().signal

async function ids(body: Uint8Array | string, sent: Sent = {}, limits: Partial<Limits> = {}): Promise<string[]> {
  return listed(await decodeIdList(source(body, sent), { ...DEFAULT_LIMITS, ...limits }, { signal }))
}

function stream(body: string | Uint8Array, sent: Sent = {}): Promise<ObjectStreamSelection> {
  return decodeObjectStreamRequest(source(body, sent), DEFAULT_LIMITS, { signal })
}

function listed(set: IdSet): string[] {
  return Array.from({ length: set.size }, (_, index) => set.stringAt(index))
}

/** Every spelling of one list that is accepted. */
function spellings(list: readonly string[]): [string | Uint8Array, Sent][] {
  const text = JSON.stringify(list)
  const everyUnit = text.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return [
    [JSON.stringify({ objects: text }), {}],
    [JSON.stringify({ objects: list }), { type: 'application/json; charset=utf-8' }],
    [JSON.stringify({ objects: JSON.stringify(list, null, 2) }, null, '\t'), { chunk: 7 }],
    [`{"objects":"${everyUnit}"}`, {}],
    [`{"a":[{"objects":1}],"\\u006fbjects":${text},"b":{}} \n`, {}],
    [gzipSync(JSON.stringify({ objects: text })), { encoding: 'gzip' }],
    [`objects=${encodeURIComponent(text)}`, { type: FORM }],
    [`a=1&objects=${encodeURIComponent(text).replaceAll('%20', '+')}&b`, { type: `${FORM}; charset=utf-8`, chunk: 5 }],
  ]
}

test('every spelling of an id list yields the same ids, each once and in order', async () => {
  const lists = [
    [],
    ['a'],
    ['b', 'a', 'b', 'a'],
    ['x y', 'a+b%20', 'q"uo\\te', 'é😀\u2028', '/../[],{}'],
    Array.from({ length: 3_000 }, (_, i) => `id-${(i * 7) % 2_000}`),
  ]
  for (const list of lists) {
    for (const [body, sent] of spellings(list)) {
      assert.deepEqual(await ids(body, sent), [...new Set(list)], Buffer.from(body).toString().slice(0, 200))
    }
  }
})

test('the reader agrees with JSON.parse on random strings', async () => {
  const random = randomFrom(11)
  const pieces = [
    'a',
    '"',
    '\\',
    '/',
    '\n',
    '\u0001',
    '\t',
    'é',
    '\u0085',
    '😀',
    '\uffff',
    '\u007f',
    '%',
    '+',
    '&',
    '=',
  ]
  for (let round = 0; round < 100; round++) {
    const list = Array.from({ length: 5 }, () =>
      Array.from({ length: 1 + Math.floor(random() * 6) }, () => pieces[Math.floor(random() * pieces.length)]).join(''),
    )
    for (const [body, sent] of spellings(list)) assert.deepEqual(await ids(body, sent), [...new Set(list)])
  }
})

test('impossible ids stay in the list, so that a diff can answer for them', async () => {
  const hostile = ['', '.', '../x', '\u0000', 'a\nb', '\u2028', 'C:\\x', 'x'.repeat(2_000), '__proto__']
  for (const [body, sent] of spellings(hostile)) assert.deepEqual(await ids(body, sent), hostile)
})

test('a body that is not a list of strings is refused', async () => {
  const bad: Record<string, readonly string[]> = {
    invalid_request: [
      '[]',
      '"a"',
      '1',
      '',
      'x',
      '{}',
      '{"objects":1}',
      '{"objects":null}',
      '{"objects":{}}',
      '{"objects":[1]}',
      '{"objects":["a",null]}',
      '{"objects":[["a"]]}',
      '{"objects":"x"}',
      '{"objects":""}',
      '{"objects":"[1]"}',
      '{"objects":"{}"}',
      '{"objects":[],"objects":[]}',
      '{"objects":[],"o\\u0062jects":[]}',
      '{"objects":"[\\"a\\",]"}',
    ],
    invalid_json: [
      '{"objects":[}',
      '{"objects":["a",]}',
      '{"objects":["a" "b"]}',
      '{"objects":[],}',
      '{"objects":["a\\x"]}',
      '{"objects":["\n"]}',
      '{"objects":"[\\"a\\"] x"}',
      '{"objects":"[\\"a\\""}',
      '{"objects":"[\\"a"}',
      '{"objects":"[\\"a\\\\x\\"]"}',
      '{"objects":"[\\"\\n\\"]"}',
      '{"objects":[]}}',
      '{"objects":[],"a":tru}',
      '{"objects":"[\\"a\\" \\"b\\"]"}',
      '{"objects":"\\ud800"}',
    ],
    invalid_id: ['{"objects":["\\ud800"]}', '{"objects":"[\\"\\\\udc00\\"]"}'],
    nesting_too_deep: [`{"objects":${'['.repeat(2_000)}}`, `{"x":${'{"a":'.repeat(2_000)}}`],
  }
  for (const [code, bodies] of Object.entries(bad)) {
    for (const body of bodies) assert.equal(await codeOf(ids(body)), code, body.slice(0, 80))
  }
  for (const body of [
    '',
    'a=1',
    'objects',
    'objects=',
    'objects=%',
    'objects=%5',
    'objects=%zz',
    'objects=[]&objects=[]',
    'objects=[1]',
  ]) {
    assert.equal(await codeOf(ids(body, { type: FORM })), 'invalid_request', body)
  }
  for (const body of [
    Buffer.from('{"objects":["\xff"]}', 'latin1'),
    Buffer.from('{"objects":["a"],"x":"\xc3"}', 'latin1'),
  ]) {
    assert.equal(await codeOf(ids(body)), 'invalid_utf8')
  }
  assert.equal(await codeOf(ids('objects=["%ff"]', { type: FORM })), 'invalid_utf8')
})

test('a list cut at any place is refused', async () => {
  for (const body of ['{"objects":"[\\"a\\",\\"b\\\\n\\"]"}', '{"objects":["a","b\\n"]}']) {
    for (let length = 0; length < body.length; length++) {
      assert.match(String(await codeOf(ids(body.slice(0, length)))), /^invalid_/, `cut at ${length}`)
    }
  }
})

test('other content types, and bodies that do not match their type, are refused', async () => {
  const body = '{"objects":[]}'
  for (const type of [
    '',
    'text/plain',
    'application/gzip',
    'application/json; charset=utf-16',
    'multipart/form-data; boundary=x',
  ]) {
    assert.equal(await codeOf(ids(body, { type })), 'unsupported_media_type', type)
  }
  assert.equal(
    await codeOf(
      decodeIdList({ ...source(body), contentType: parseContentType(undefined) }, DEFAULT_LIMITS, { signal }),
    ),
    'unsupported_media_type',
  )
  assert.equal(await codeOf(ids(body, { encoding: 'br' })), 'unsupported_media_type')
  assert.equal(await codeOf(ids(body, { encoding: 'gzip' })), 'invalid_request')
  assert.equal(await codeOf(ids(gzipSync(body))), 'invalid_request')
  assert.equal(await codeOf(ids(gzipSync(body).subarray(0, -1), { encoding: 'gzip' })), 'invalid_gzip')
  assert.equal(await codeOf(stream('objectIds=[]', { type: FORM })), 'unsupported_media_type')
})

test('the body is bounded on the wire and after inflation', async () => {
  const body = JSON.stringify({ objects: Array.from({ length: 500 }, (_, i) => `an-id-${i}`) })
  assert.equal((await ids(body, {}, { idListBytesMax: body.length })).length, 500)
  for (const length of [undefined, body.length]) {
    assert.equal(
      await codeOf(ids(body, { length, chunk: 100 }, { idListBytesMax: body.length - 1 })),
      'id_list_too_large',
    )
  }
  assert.equal((await ids(gzipSync(body), { encoding: 'gzip' }, { idListBytesMax: body.length })).length, 500)
  assert.equal(
    await codeOf(ids(gzipSync(body), { encoding: 'gzip' }, { idListBytesMax: body.length - 1 })),
    'id_list_too_large',
  )
})

test('an aborted request ends the reader', async () => {
  const body: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }),
  }
  const abort = new AbortController()
  const ended = codeOf(
    decodeIdList(
      { contentType: parseContentType('application/json'), contentEncoding: undefined, contentLength: 10, body },
      DEFAULT_LIMITS,
      { signal: abort.signal },
    ),
  )
  abort.abort()
  assert.equal(await ended, 'request_aborted')
})

test('a list of 100,000 ids is read quickly', async () => {
  const list = Array.from({ length: 100_000 }, (_, i) => i.toString(16).padStart(32, '0'))
  const body = JSON.stringify({ objects: JSON.stringify(list) })
  const beganMs = processorMs()
  assert.equal((await decodeIdList(source(body), DEFAULT_LIMITS, { signal })).size, list.length)
  assert.ok(processorMs() - beganMs < 5_000)
})

test('an object-stream request is read with and without a mask', async () => {
  const plain = await stream('{"objectIds":["a","b","a"]}')
  assert.deepEqual(listed(plain.ids), ['a', 'b'])
  assert.equal(plain.mask, undefined)
  const included = await stream('{"attributeMask": {"include": ["id", "sp\\u0065ed"]}, "objectIds": ["a"]}', {
    chunk: 3,
  })
  assert.deepEqual(included.mask, { include: ['id', 'speed'] })
  assert.deepEqual(
    (await stream(gzipSync('{"objectIds":["a"],"attributeMask":{"exclude":[]}}'), { encoding: 'gzip' })).mask,
    { exclude: [] },
  )
})

test('an invalid attribute mask is refused with the rule that it breaks', async () => {
  for (const [mask, message] of [
    [
      '{"include":[],"exclude":[]}',
      /^StowageError: attributeMask must .* exactly one of include, exclude; it is an object with "include", "exclude"$/,
    ],
    ['{}', /^StowageError: attributeMask must be an object with exactly one of include, exclude; it is an object$/],
    ['[]', /^StowageError: attributeMask must be an object$/],
  ] as const)
    await assert.rejects(stream(`{"objectIds":["a"],"attributeMask":${mask}}`), message)
})

test('a malformed object-stream request is refused', async () => {
  const mask = (text: string): string => `{"objectIds":["a"],"attributeMask":${text}}`
  const bad = [
    '{}',
    '{"objectIds":[]}',
    '{"objectIds":"[\\"a\\"]"}',
    '{"objectIds":["a",1]}',
    '{"objectIds":["a"],"x":1}',
    '{"objectIds":["a"],"objectIds":["a"]}',
    '{"objectIds":{"include":[]}}',
    '{"objectIds":null}',
    ...[
      'null',
      '[]',
      '1',
      '"include"',
      '{}',
      '{"include":[],"exclude":[]}',
      '{"include":["a"],"x":1}',
      '{"include":"a"}',
      '{"include":"[]"}',
      '{"include":[1]}',
      '{"include":{"exclude":[]}}',
      '{"include":["a"],"include":["a"]}',
      `{"include":${JSON.stringify(Array.from({ length: 1_001 }, String))}}`,
    ].map(mask),
  ]
  for (const body of bad) assert.equal(await codeOf(stream(body)), 'invalid_request', body.slice(0, 80))
})
