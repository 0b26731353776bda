import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { ObjectBatch } from '../../src/object/batch.ts'
import type { Element } from '../../src/object/element.ts'
import { inspectBatches } from '../../src/inspect/inspect.ts'
import { asBatches, elementsOf, inspectAll, never, objectsOf, refusalOf } from './inspecting.ts'
import { canBeId } from './oracle.ts'

const LIMITS = { nestingMax: 1_000 }

async function jsonOf(text: string): Promise<string> {
  return (await inspectAll([text])).objects[0].json
}

test('the text stays as it was sent', async () => {
  const texts = [
    '{"id":"a","z":1.0,"a":1e400,"n":-0,"big":123456789012345678901234567890}',
    '{"id":"a","id2":"\\u00e9\\/\\ud800","é":"\u00e9"}',
    '{"id":"a","__proto__":{"x":1},"toString":null}',
    '{ "id" : "a" , "b" : [ 1 , 2 ] }',
    '{"a":1,"a":2,"id":"a","":""}',
    '{"id":"a","s":"\u007f\u00a0\ufeff\u{10ffff}"}',
  ]
  for (const text of texts) assert.equal(await jsonOf(text), text)
})

test('white space with line ends or tabs is removed, and other spaces and strings stay', async () => {
  assert.equal(await jsonOf('{\n  "id": "a",\n\t"b c": [1,  2, \r\n 3 ]\n}'), '{"id": "a","b c": [1,  2,3 ]}')
  assert.equal(await jsonOf('\t{"id":"a"} \n'), '{"id":"a"}')
})

test('raw line separators become escapes, even in keys', async () => {
  assert.equal(
    await jsonOf('{"id":"a","\u0085":"x\u2028y\u2029\u2027\u0084"}'),
    '{"id":"a","\\u0085":"x\\u2028y\\u2029\u2027\u0084"}',
  )
})

test('an object without an id gets the digest of its text as its first member', async () => {
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)
  const { objects, assigned } = await inspectAll(['{}', '{"id":"b"}', '{\n"a":"\u2028"}', '{ "a":{"id":"x"}}', '{ }'])
  const texts = ['{}', '{"a":"\\u2028"}', '{ "a":{"id":"x"}}', '{ }']
  assert.deepEqual(
    assigned,
    [0, 2, 3, 4].map((index, i) => ({ part: 0, index, id: hash(texts[i]) })),
  )
  assert.deepEqual(
    objects.map(({ json }) => json),
    [
      `{"id":"${hash(texts[0])}"}`,
      '{"id":"b"}',
      `{"id":"${hash(texts[1])}","a":"\\u2028"}`,
      `{"id":"${hash(texts[2])}", "a":{"id":"x"}}`,
      `{"id":"${hash(texts[3])}" }`,
    ],
  )
})

test('the last of several ids counts, however its key is spelled', async () => {
  const { objects } = await inspectAll([
    '{"id":"a","\\u0069d":"b"}',
    '{"id":1,"id":"c"}',
    '{"id":"\\u0061\\u00e9"}',
    '{"a":{"id":5},"id":"d"}',
  ])
  assert.deepEqual(
    objects.map(({ id }) => id),
    ['b', 'c', 'aé', 'd'],
  )
  assert.equal((await refusalOf('{"id":"a","\\u0069d":null}'))?.code, 'invalid_object')
})

test('references are strings at any depth, and claims are the keys of a top-level __closure object', async () => {
  const text =
    '{"id":"a","referencedId":"r0","x":[{"referencedId":"r1"},{"y":{"referenced\\u0049d":"r\\u0032"}}],"n":{"referencedId":5,"__closure":{"no":1}},"__closure":{"c1":1,"c\\t2":2,"c\\u0033":{"no":3}}}'
  const {
    objects: [object],
  } = await inspectAll([text])
  assert.deepEqual(object.references, ['r0', 'r1', 'r2'])
  assert.deepEqual(object.claims, ['c1', 'c3'])
})

test('an invalid id is no reference, and the last of several __closure members counts', async () => {
  const unfit = ['', 'a\\nb', '\\ud800', '\u2028', '\u0085', 'x'.repeat(513), '\\u0061'.repeat(513)]
  const { objects } = await inspectAll([
    `{"id":"a","l":[${unfit.map((id) => `{"referencedId":"${id}"}`).join(',')}],"__closure":{${unfit.map((id) => `"${id}":1`).join(',')}}}`,
    '{"id":"b","__closure":{"x":1},"__closure":{"y":1}}',
    '{"id":"c","__closure":{"x":1},"__closure":[{"y":1}]}',
    '{"id":"d","__closure":"x","e":{"f":1}}',
  ])
  assert.deepEqual(
    objects.map(({ references, claims }) => [references, claims]),
    [
      [[], []],
      [[], ['y']],
      [[], []],
      [[], []],
    ],
  )
})

test('hostile ids are refused or kept apart, byte for byte', async () => {
  const characters = [
    '../x',
    '.',
    '..',
    '/',
    '\\',
    'C:',
    'C:\\x',
    'nul',
    'con',
    '%2F',
    '%00',
    '\0',
    '\n',
    '\r',
    '\t',
    '\u001b',
    '\u007f',
    '\u0080',
    '\u0085',
    '\u009f',
    '\u00a0',
    '\u2028',
    '\u2029',
    '\u202e',
    '\ufeff',
    '\ufffd',
    '\ud800',
    '\udfff',
    '\udc00\ud800',
    'é',
    'e\u0301',
    'É',
    'K',
    '\u212a',
    '🏠',
    '__proto__',
    'constructor',
    'id',
    '"',
    '{"id":"x"}',
    ' ',
    '',
  ]
  const ids = [
    ...characters,
    ...characters.flatMap((id) => [`a${id}`, `${id}b`, id + id, `A${id}`]),
    'x'.repeat(512),
    'x'.repeat(513),
    '🏠'.repeat(128),
    '🏠'.repeat(129),
    'x'.repeat(1_048_576),
  ]
  const fit = new Set<string>()
  for (const id of ids) {
    if (canBeId(id)) fit.add(id)
    else assert.equal((await refusalOf(JSON.stringify({ id })))?.code, 'invalid_id', JSON.stringify(id.slice(0, 64)))
  }
  assert.ok(ids.length > 200 && fit.size > 100)
  const { objects } = await inspectAll([...fit].map((id) => JSON.stringify({ id })))
  assert.deepEqual(
    objects.map(({ id }) => id),
    [...fit],
  )
})

test('a refusal names the part, the element, the id if known, and the byte', async () => {
  const elements: Element[] = [
    { bytes: Buffer.from('{"id":"a"}'), part: 1, index: 6 },
    { bytes: Buffer.from('{"id":"b\u0085","x":tru}'), part: 1, index: 7 },
  ]
  await assert.rejects(drained(inspectBatches(asBatches([elements]), LIMITS, { signal: never })), {
    code: 'invalid_json',
    statusCode: 400,
    message: 'a word other than true, false and null (part 1, element 7, id "b\\u0085", byte 16 of the object)',
  })
  const places: readonly (readonly [string | Uint8Array, string, number])[] = [
    ['{"id":[]}', 'invalid_object', 6],
    ['{"id":""}', 'invalid_id', 6],
    ['[]', 'invalid_object', 0],
    ['', 'invalid_object', 0],
    ['{"a":1', 'invalid_json', 5],
    ['\ufeff{}', 'invalid_object', 0],
    [
      Buffer.concat([Buffer.from(`{"a":"${'é'.repeat(5_000)}`), Buffer.from([0xc3, 0x22, 0x7d])]),
      'invalid_utf8',
      10_006,
    ],
    [Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]), 'invalid_utf8', 2],
  ]
  for (const [text, code, at] of places) {
    const refusal = await refusalOf(text)
    assert.ok(refusal !== undefined)
    assert.equal(refusal.code, code)
    assert.match(refusal.message, new RegExp(`part 0, element 0.*, byte ${at} of the object`), code)
  }
})

test('nesting is bounded', async () => {
  const nested = (levels: number): string => `{"id":"a","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  assert.equal(await refusalOf(nested(50), 50), undefined)
  assert.equal((await refusalOf(nested(51), 50))?.code, 'nesting_too_deep')
})

test('batches keep the order, hold about 256 KB, and are never overwritten', async () => {
  const texts = Array.from({ length: 3_000 }, (_, i) =>
    JSON.stringify({
      id: `o${i}`,
      x: { referencedId: `r${i}` },
      pad: 'p'.repeat(i % 700),
      __closure: { [`c${i}`]: 1 },
    }),
  )
  const elements = elementsOf(texts)
  const batches: ObjectBatch[] = []
  for await (const batch of inspectBatches(asBatches([elements.slice(0, 10), [], elements.slice(10)]), LIMITS, {
    signal: never,
  }))
    batches.push(batch)
  assert.ok(
    batches.length > 2 && batches.every(({ lines }) => lines.length < 300_000),
    'several batches of a bounded size',
  )
  const objects = batches.flatMap(objectsOf)
  assert.deepEqual(
    objects,
    texts.map((json, i) => ({ id: `o${i}`, json, references: [`r${i}`], claims: [`c${i}`] })),
  )
})

test('no elements yield no batch', async () => {
  assert.deepEqual(await inspectAll([]), { objects: [], assigned: [] })
})

test('the event loop runs during a large object and between many small ones', async () => {
  const large = `{"a":{${'"\\u0072eference\\u0064Ix":1,'.repeat(120_000)}"x":1},"pad":"${'p'.repeat(1_000_000)}"}`
  const digest = createHash('sha256').update(large).digest('hex').slice(0, 32)
  for (const texts of [[large], Array.from({ length: 150_000 }, (_, i) => `{"id":"${i}"}`)]) {
    let turns = 0
    const count = (): void => void (turns++, (timer = setImmediate(count)))
    let timer = setImmediate(count)
    const { objects } = await inspectAll(texts).finally(() => clearImmediate(timer))
    assert.equal(objects.length, texts.length)
    assert.ok(turns >= 3, `${turns} turns`)
    if (texts.length === 1) assert.equal(objects[0].id, digest)
  }
})

test('an abort and an early return close the source', async () => {
  const controller = new AbortController()
  let closed = 0
  const endless = async function* (): AsyncGenerator<readonly Element[]> {
    try {
      for (;;) yield elementsOf([`{"id":"a","pad":"${'p'.repeat(100_000)}"}`])
    } finally {
      closed++
    }
  }
  for await (const batch of inspectBatches(endless(), LIMITS, { signal: never })) {
    assert.ok(batch.count > 0)
    break
  }
  assert.equal(closed, 1)
  const reason = new Error('the client is gone')
  const batches = inspectBatches(endless(), LIMITS, { signal: controller.signal })
  await batches.next()
  controller.abort(reason)
  await assert.rejects(drained(batches), reason)
  assert.equal(closed, 2)
  await assert.rejects(drained(inspectBatches(failing(), LIMITS, { signal: never })), /cut off/)
})

async function* failing(): AsyncGenerator<readonly Element[]> {
  yield elementsOf(['{"id":"a"}'])
  throw new Error('cut off')
}

async function drained(batches: AsyncIterable<ObjectBatch>): Promise<number> {
  let objects = 0
  for await (const batch of batches) objects += batch.count
  return objects
}
