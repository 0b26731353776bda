import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { errorOf, idList, jsonUpload } from '../http/served.ts'
import { SHARED_ENGINES } from '../support/several-servers.ts'
import {
  contractList,
  filePart,
  linesOf,
  multipartUpload,
  onEverySide,
  planned,
  shapedError,
  type Side,
  store,
  storeText,
} from './sides.ts'

/* The rules that hold everywhere; each test quotes the one that it holds. Rule 4 is in limits.test.ts, rules 7 to 9 are in walls.test.ts. */

const everySide = onEverySide()
const JSON_BODY = { 'Content-Type': 'application/json' }
const GZIP_BODY = { 'Content-Type': 'application/gzip' }

async function held(side: Side, ids: readonly string[]): Promise<Record<string, boolean>> {
  return (await (await side.ask(`/api/diff/${side.project}`, contractList(ids))).json()) as Record<string, boolean>
}

async function single(side: Side, id: string): Promise<string> {
  return (await side.ask(`/objects/${side.project}/${id}/single`)).text()
}

const GOOD = '[{"id":"a"},{"id":"b"}]'
const truncated = gzipSync(GOOD).subarray(0, -1)
const wrongCrc = gzipSync(GOOD)
wrongCrc[wrongCrc.length - 5] ^= 1

/** Each begins with objects that are good. */
const BROKEN: readonly (readonly [string, RequestInit])[] = [
  ['JSON that ends early', { method: 'POST', headers: JSON_BODY, body: GOOD.slice(0, -1) }],
  ['something behind the array', { method: 'POST', headers: JSON_BODY, body: `${GOOD}]` }],
  ['an element that is no object', { method: 'POST', headers: JSON_BODY, body: '[{"id":"a"},7]' }],
  ['an id that cannot be', { method: 'POST', headers: JSON_BODY, body: '[{"id":"a"},{"id":"\\u0000"}]' }],
  [
    'bytes that are not UTF-8',
    {
      method: 'POST',
      headers: JSON_BODY,
      body: Buffer.concat([Buffer.from('[{"id":"a"},{"id":"b","x":"'), Buffer.of(0xff), Buffer.from('"}]')]),
    },
  ],
  ['gzip that ends early', { method: 'POST', headers: GZIP_BODY, body: truncated }],
  ['gzip with a wrong CRC', { method: 'POST', headers: GZIP_BODY, body: wrongCrc }],
  [
    'a second file that is broken',
    multipartUpload([filePart(GOOD, 'application/json'), filePart(truncated, 'application/gzip')]),
  ],
  ['a second file of another type', multipartUpload([filePart(GOOD, 'application/json'), filePart(GOOD, 'image/png')])],
  [
    'a multipart body without its end',
    { ...multipartUpload([]), body: multipartUpload([filePart(GOOD, 'application/json')]).body.subarray(0, -4) },
  ],
]

everySide('rule 1: "a request that fails in any way leaves nothing visible"', async (side) => {
  for (const [what, init] of BROKEN) {
    const { status } = await errorOf(await side.ask(`/objects/${side.project}`, init))
    assert.ok(status >= 400 && status < 500, `${what}: ${status}`)
    assert.deepEqual(await held(side, ['a', 'b']), { a: false, b: false }, what)
  }
  await store(side, [{ id: 'b' }])
  assert.deepEqual(await held(side, ['a', 'b']), { a: false, b: true })
})

everySide(
  'rule 1: "repeating an upload is harmless. The first text for an id wins; a different text for a held id is counted (differing)"',
  async (side) => {
    assert.deepEqual(await store(side, [{ id: 'a', n: 1 }, { id: 'b' }]), {
      objects: 2,
      created: 2,
      differing: 0,
      rewritten: 0,
      assigned: [],
      assignedCount: 0,
    })
    assert.deepEqual(await store(side, [{ id: 'a', n: 1 }, { id: 'b' }]), {
      objects: 2,
      created: 0,
      differing: 0,
      rewritten: 0,
      assigned: [],
      assignedCount: 0,
    })
    assert.deepEqual(await store(side, [{ id: 'a', n: 2 }, { id: 'c' }]), {
      objects: 2,
      created: 1,
      differing: 1,
      rewritten: 0,
      assigned: [],
      assignedCount: 0,
    })
    assert.equal(await single(side, 'a'), '{"id":"a","n":1}')
  },
)

everySide('rule 1: of two texts for one id in one request the first wins, in whichever part they are', async (side) => {
  const parts = ['[{"id":"a","n":1}]', '[{"id":"b"},{"id":"a","n":2}]'].map((text) =>
    filePart(text, 'application/json'),
  )
  const summary = await (await side.ask(`/objects/${side.project}`, multipartUpload(parts))).json()
  assert.deepEqual(summary, { objects: 2, created: 2, differing: 1, rewritten: 0, assigned: [], assignedCount: 0 })
  assert.equal(await single(side, 'a'), '{"id":"a","n":1}')
})

const SPELLED = [
  '{"z":1,"id":"t0","a":2}',
  '{"id":"t1","n":[1.0,1e400,-0,12345678901234567890,0.10]}',
  '{"id":"t2","s":"\\u0041\\/\\ud83d\\ude00é\\n"}',
  '{ "id" : "t3" , "x" : [ ] }',
  '{"id":"first","id":"t4"}',
  '{"__proto__":{"x":1},"id":"t5","constructor":null}',
  '{"\\u0069d":"t6"}',
]

everySide(
  'rule 2: "an object comes back as the text that was sent: key order, number spelling, escapes"',
  async (side) => {
    await storeText(side, `[${SPELLED.join(' , ')}]`)
    for (const [n, text] of SPELLED.entries()) assert.equal(await single(side, `t${n}`), text)
    const ids = SPELLED.map((_, n) => `t${n}`)
    const lines = await linesOf(
      await side.ask(`/api/getobjects/${side.project}`, contractList(ids, { Accept: 'text/plain' })),
    )
    assert.deepEqual([...lines.values()].toSorted(), SPELLED.toSorted())
    const array = await (await side.ask(`/api/getobjects/${side.project}`, contractList(ids))).text()
    for (const text of SPELLED) assert.ok(array.includes(text), text)
  },
)

everySide(
  'rule 2: the three exceptions, white space with line ends or tabs, raw line separators, objects without an id',
  async (side) => {
    await storeText(side, '[{\r\n\t"id": "a",\n"text":"\u0085|\u2028|\u2029|\\t"  }]')
    assert.equal(await single(side, 'a'), '{"id": "a","text":"\\u0085|\\u2028|\\u2029|\\t"  }')
    const text = '{"n":1.50}'
    const id = createHash('sha256').update(text).digest('hex').slice(0, 32)
    assert.deepEqual(await storeText(side, `[{"id":"b"},${text}]`), {
      objects: 2,
      created: 2,
      differing: 0,
      rewritten: 0,
      assigned: [{ part: 0, index: 1, id }],
      assignedCount: 1,
    })
    assert.equal(await single(side, id), `{"id":"${id}","n":1.50}`)
  },
)

everySide('rule 3: "a child is any nested value with a string referencedId, at any depth"', async (side) => {
  const objects = ['a', 'b', 'c', 'd', 'no', 'nor'].map((id) => ({ id }))
  const root =
    '{"id":"root","referencedId":"a","x":[[{"referencedId":"b"}]],"y":{"z":{"\\u0072eferencedId":"c"}},"__closure":{"d":1},"text":"{\\"referencedId\\":\\"no\\"}","w":{"referencedId":["nor"]}}'
  await storeText(side, `[${root},${objects.map((object) => JSON.stringify(object)).join()}]`)
  const ids = [
    ...(await linesOf(await side.ask(`/objects/${side.project}/root`, { headers: { Accept: 'text/plain' } }))).keys(),
  ]
  assert.deepEqual([ids[0], ids.toSorted()], ['root', ['a', 'b', 'c', 'd', 'root']])
})

everySide(
  'rule 3: "held ids in __closure count as descendants too, others are ignored, and a wrong one never hides a real reference"',
  async (side) => {
    await store(side, [
      { id: 'root', child: { referencedId: 'a' }, __closure: { claimed: 1, invented: 2, root: 3 } },
      { id: 'a', to: { referencedId: 'b' }, __closure: {} },
      { id: 'b' },
      { id: 'claimed' },
    ])
    const answer = await side.ask(`/objects/${side.project}/root?strict`, { headers: { Accept: 'text/plain' } })
    assert.equal(answer.headers.get('stowage-missing-objects'), '0')
    assert.deepEqual([...(await linesOf(answer)).keys()].toSorted(), ['a', 'b', 'claimed', 'root'])
  },
)

everySide(
  'rule 3: "a download sends what is there and says how many are missing; ?strict answers 409 with their ids", until they come',
  async (side) => {
    await store(side, [{ id: 'root', to: ['a', 'b', 'c'].map((referencedId) => ({ referencedId })) }, { id: 'a' }])
    const path = `/objects/${side.project}/root`
    const loose = await side.ask(path)
    assert.deepEqual(
      [loose.headers.get('stowage-missing-objects'), ((await loose.json()) as unknown[]).length],
      ['2', 2],
    )
    const strict = (await (await side.ask(`${path}?strict`)).json()) as {
      statusCode: number
      code: string
      ids: string[]
    }
    assert.deepEqual([strict.statusCode, strict.code, strict.ids.toSorted()], [409, 'objects_missing', ['b', 'c']])
    await store(side, [{ id: 'b' }, { id: 'c' }])
    const complete = await side.ask(`${path}?strict`)
    assert.deepEqual(
      [complete.status, complete.headers.get('stowage-missing-objects'), ((await complete.json()) as unknown[]).length],
      [200, '0', 4],
    )
  },
)

everySide('rule 5: one shape, {"message","statusCode","code"}, on every route, from every layer', async (side) => {
  const [p, list, upload] = [side.project, contractList(['a']), jsonUpload([])]
  await store(side, [{ id: 'a' }])
  const lists = [`/api/diff/${p}`, `/api/getobjects/${p}`]
  const stream = `/api/v2/projects/${p}/object-stream`
  const reads = [`/objects/${p}/a`, `/objects/${p}/a/single`]
  const typed = (type: string, body: string): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': type },
    body,
  })
  const requests: (readonly [number, string, RequestInit])[] = [
    [404, '/', {}],
    [404, `/objects/${p}/`, list],
    [404, `/objects/${p}/none`, {}],
    [404, `/objects/${p}/none/single`, {}],
    [400, `/objects/${p}/%ff`, {}],
    // nginx refuses this by itself, with a page of its own.
    ...(SHARED_ENGINES === undefined ? ([[400, `/objects/${p}/%00`, {}]] as const) : []),
    [400, `/objects/${'x'.repeat(129)}`, upload],
    [405, `/objects/${p}`, {}],
    [405, stream, { method: 'PUT', body: 'x' }],
    [405, lists[0], {}],
    [405, lists[1], { method: 'PATCH', body: '{}' }],
    [415, `/objects/${p}`, typed('text/html', '[]')],
    [415, `/objects/${p}`, typed('multipart/mixed; boundary=x', '--x--')],
    [415, stream, typed('text/plain', '{}')],
    [400, `/objects/${p}`, typed('application/json', '{"a":1}')],
    [400, `/objects/${p}`, typed('multipart/form-data', '')],
    [400, stream, typed('application/json', '{"objectIds":[]}')],
    ...reads.flatMap(
      (path) =>
        [
          [405, path, { method: 'DELETE' }],
          [405, path, upload],
          [406, path, { headers: { 'Accept-Encoding': 'gzip;q=0, identity;q=0' } }],
        ] as const,
    ),
    ...lists.flatMap(
      (path) =>
        [
          [415, path, typed('text/plain', '{"objects":[]}')],
          [400, path, typed('application/json', '{')],
        ] as const,
    ),
    [406, reads[0], { headers: { Accept: 'image/png' } }],
    [406, lists[1], contractList(['a'], { Accept: 'text/html' })],
    [406, stream, { ...idList(['a'], 'objectIds'), headers: { ...JSON_BODY, 'Accept-Encoding': 'br, identity;q=0' } }],
  ]
  for (const [status, path, init] of requests)
    assert.equal((await shapedError(await side.ask(path, init))).status, status, `${init.method ?? 'GET'} ${path}`)
  const endpoints: (readonly [string, RequestInit])[] = [
    [`/objects/${p}`, upload],
    [lists[0], list],
    [lists[1], list],
    [stream, idList(['a'], 'objectIds')],
    [reads[0], {}],
    [reads[1], {}],
  ]
  for (const [path, init] of endpoints) {
    assert.equal((await shapedError(await side.ask(path, init, 'nobody'))).status, 401, path)
    assert.equal((await shapedError(await side.ask(path, init, 'stranger'))).status, 403, path)
    assert.equal((await shapedError(await side.ask(`/elsewhere${path}`, init))).status, 404, path)
  }
})

everySide(
  'rule 5: "message says which rule was broken and where (part, index in the array, id, byte)"',
  async (side) => {
    const body = multipartUpload([
      filePart('[{"id":"ok"}]', 'application/json'),
      filePart('[{"id":"x"},{"id":"bad","n":01}]', 'application/json'),
    ])
    const { message } = await errorOf(await side.ask(`/objects/${side.project}`, body))
    for (const place of ['part 1', 'element 1', '"bad"', 'byte 17'])
      assert.ok(message.includes(place), `${place} in: ${message}`)
  },
)

everySide('rule 6: "Accept is really negotiated (lists, */*, q-values); JSON is the default"', async (side) => {
  await store(side, [{ id: 'a' }])
  const typeFor = async (accept: string): Promise<string | undefined> => {
    const answer = await side.ask(`/objects/${side.project}/a`, { headers: { Accept: accept } })
    await answer.arrayBuffer()
    return answer.headers.get('content-type')?.split(';')[0]
  }
  for (const accept of [
    '*/*',
    'application/json',
    'text/plain;q=0.5, application/json',
    'text/*;q=0.1, */*',
    'application/json, text/plain',
    'image/png, */*;q=0.1',
  ]) {
    assert.equal(await typeFor(accept), 'application/json', accept)
  }
  for (const accept of [
    'text/plain',
    'text/*',
    'text/plain, application/json;q=0.9',
    '*/*;q=0.5, application/json;q=0',
    'text/plain; charset=utf-8',
  ]) {
    assert.equal(await typeFor(accept), 'text/plain', accept)
  }
})

everySide('rule 6: "text/plain ends every line with LF. In both the root comes first"', async (side) => {
  await store(side, [
    ...Array.from({ length: 50 }, (_, n) => ({ id: `${n}` })),
    { id: 'root', to: Array.from({ length: 50 }, (_, n) => ({ referencedId: `${n}` })) },
  ])
  const text = await (await side.ask(`/objects/${side.project}/root`, { headers: { Accept: 'text/plain' } })).text()
  assert.ok(text.startsWith('root\t') && text.endsWith('\n') && text.split('\n').length === 52)
  const [first] = (await (await side.ask(`/objects/${side.project}/root`)).json()) as { id: string }[]
  assert.equal(first.id, 'root')
})

everySide('rule 6: "gzip and identity; gzip wins ties"', async (side) => {
  await store(side, [{ id: 'a', text: 'x'.repeat(5_000) }])
  for (const [asked, coding] of [
    ['gzip', 'gzip'],
    ['identity', null],
    ['identity, gzip', 'gzip'],
    ['gzip;q=0.5, identity', null],
    ['br', null],
    ['*', 'gzip'],
    ['gzip;q=0', null],
  ] as const) {
    for (const path of [`/objects/${side.project}/a`, `/objects/${side.project}/a/single`]) {
      const answer = await side.ask(path, { headers: { 'Accept-Encoding': asked } })
      await answer.arrayBuffer()
      assert.equal(answer.headers.get('content-encoding'), coding, `${path} with ${asked}`)
    }
  }
})

everySide(
  'rule 6: "a missing id in a list is left out and counted in the header. Duplicates in a request come back once"',
  async (side) => {
    await store(side, [{ id: 'a' }, { id: 'b' }])
    const ids = ['a', 'none', 'b', 'a', 'none', 'nor']
    const answer = await side.ask(`/api/getobjects/${side.project}`, contractList(ids))
    assert.equal(answer.headers.get('stowage-missing-objects'), '2')
    assert.deepEqual(((await answer.json()) as { id: string }[]).map(({ id }) => id).toSorted(), ['a', 'b'])
    const stream = await side.ask(`/api/v2/projects/${side.project}/object-stream`, idList(ids, 'objectIds'))
    assert.equal(stream.headers.get('stowage-missing-objects'), '2')
    assert.deepEqual([...(await linesOf(stream)).keys()].toSorted(), ['a', 'b'])
  },
)

everySide(
  'rule 6: "Vary: Accept, Accept-Encoding, Authorization, Cache-Control: private, no-cache; access is checked before 304, 412 and 416"',
  async (side) => {
    await store(side, [{ id: 'a' }])
    const path = `/objects/${side.project}/a`
    const { headers } = await planned(side, path)
    assert.deepEqual(
      [headers.get('vary'), headers.get('cache-control')],
      ['Accept, Accept-Encoding, Authorization', 'private, no-cache'],
    )
    for (const [condition, value, status] of [
      ['If-None-Match', '*', 304],
      ['If-Match', '"other"', 412],
      ['Range', 'bytes=999999-', 416],
    ] as const) {
      const init = { headers: { [condition]: value } }
      assert.equal((await errorOf(await side.ask(path, init, 'nobody'))).status, 401)
      assert.equal((await errorOf(await side.ask(path, init, 'stranger'))).status, 403)
      assert.equal((await side.ask(path, init, 'reader')).status, status)
    }
  },
)
