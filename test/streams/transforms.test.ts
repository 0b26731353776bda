import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { boundedGunzip, parseIds, parseObjects, type ParseObjectsOptions } from '../../src/streams/index.ts'
import { BatchDuplex } from '../../src/streams/batch-duplex.ts'
import { turns } from '../support/patience.ts'

const VALUES = [{ id: 'a', text: 'line\nend é' }, { id: 'b', n: [1, { deep: [true, null] }] }, { id: 'c' }]
const NDJSON = VALUES.map((value) => JSON.stringify(value)).join('\n')

/** What comes out when a text comes in pieces of some bytes. */
async function parsed(text: string, options: ParseObjectsOptions = {}, pieceBytes: number = 7): Promise<unknown[]> {
  const bytes = Buffer.from(text)
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, at) =>
    bytes.subarray(at * pieceBytes, (at + 1) * pieceBytes),
  )
  return through(pieces, parseObjects(options))
}

async function through(pieces: readonly Uint8Array[], transform: Duplex): Promise<unknown[]> {
  const found: unknown[] = []
  await pipeline(pieces, transform, async (all: AsyncIterable<unknown>) => {
    for await (const one of all) found.push(one)
  })
  return found
}

test('objects are read from arrays and lines, regardless of chunks', async () => {
  for (const pieceBytes of [1, 2, 7, 1_000]) {
    for (const text of [
      JSON.stringify(VALUES),
      ` \n ${JSON.stringify(VALUES, null, 2)}\n`,
      NDJSON,
      `\n${NDJSON}\r\n\r\n`,
    ])
      assert.deepEqual(await parsed(text, {}, pieceBytes), VALUES, `${text} in pieces of ${pieceBytes}`)
  }
  assert.deepEqual(await parsed('[]'), [])
  assert.deepEqual(await parsed(''), [])
  assert.deepEqual(await parsed('', { format: 'ndjson' }), [])
  assert.deepEqual(await parsed('[{"id":"a","n":1.50}]', { output: 'texts' }), ['{"id":"a","n":1.50}'])
  assert.deepEqual(await parsed(' {"n":1e400} \n', { output: 'texts' }), ['{"n":1e400}'])
})

test('a fault in a text destroys the transform and names the place', async () => {
  const cases: readonly [string, ParseObjectsOptions, object][] = [
    ['[{"id":"a"},{"id":x}]', {}, { code: 'invalid_json', message: /^element 1 of the stream is not JSON: .*byte 6/ }],
    ['{"id":"a"}\n{"id":}\n', {}, { code: 'invalid_json', message: /^line 2 of the stream is not JSON/ }],
    ['{"id":"a"}\n{"id":"b"},{}\n', {}, { code: 'invalid_json', message: /^line 2 .* not one JSON object/ }],
    ['{"id":"a"}\n{"id":"b"\n', { output: 'texts' }, { code: 'invalid_json', message: /^line 2/ }],
    ['{"id":"a"}\n5\n', {}, { code: 'invalid_object' }],
    ['[{"id":"a"}', {}, { code: 'invalid_json' }],
    ['', { format: 'json' }, { code: 'invalid_json' }],
    [`[{"a":"${'x'.repeat(100)}"}]`, { objectBytesMax: 50 }, { code: 'object_too_large' }],
    [`{"a":"${'x'.repeat(100)}"}`, { objectBytesMax: 50 }, { code: 'object_too_large' }],
    ['[{},{},{}]', { objectsMax: 2 }, { code: 'too_many_objects' }],
    ['{}\n{}\n{}', { objectsMax: 2 }, { code: 'too_many_objects' }],
    ['{"a":[[]]}', { nestingMax: 2 }, { code: 'nesting_too_deep' }],
  ]
  for (const [text, options, error] of cases) await assert.rejects(parsed(text, options), error, text)
  await assert.rejects(
    Readable.from([Buffer.from('{"a":"\xff"}', 'latin1')])
      .compose(parseObjects())
      .toArray(),
    { code: 'invalid_utf8' },
  )
})

test('ids are read from request bodies, each once', async () => {
  for (const body of ['{"objects":["a","b","a"]}', '{"objects":"[\\"a\\",\\"b\\"]"}'])
    assert.deepEqual(
      await Readable.from([Buffer.from(body)])
        .compose(parseIds())
        .toArray(),
      ['a', 'b'],
    )
  const many = Array.from({ length: 2_500 }, (_, at) => `id ${at}`)
  const body = Buffer.from(JSON.stringify({ objects: many }))
  assert.deepEqual(await through([body], parseIds()), many)
  await assert.rejects(
    Readable.from([body])
      .compose(parseIds({ bytesMax: 1_000 }))
      .toArray(),
    { code: 'id_list_too_large' },
  )
  await assert.rejects(
    Readable.from([Buffer.from('{}')])
      .compose(parseIds())
      .toArray(),
    { code: 'invalid_request' },
  )
})

test('gzip is inflated up to a bound', async () => {
  const bytes = randomBytes(1_000_000)
  const inflated = async (file: Buffer, bytesMax?: number): Promise<Buffer> => {
    const pieces = await through([file], boundedGunzip(bytesMax === undefined ? {} : { bytesMax }))
    return Buffer.concat(pieces as Buffer[])
  }
  assert.ok((await inflated(gzipSync(bytes))).equals(bytes))
  assert.equal((await inflated(gzipSync(bytes), 1_000_000)).length, 1_000_000)
  await assert.rejects(inflated(gzipSync(bytes), 999_999), { code: 'inflated_too_large' })
  await assert.rejects(inflated(gzipSync(Buffer.alloc(50_000_000)), 1_000_000), { code: 'inflated_too_large' })
  await assert.rejects(inflated(gzipSync(bytes).subarray(0, -5)), { code: 'invalid_gzip' })
})

test('a transform buffers no more than it can pass on, and ends with its pipeline', async () => {
  let taken = 0
  async function* endless(): AsyncGenerator<Buffer> {
    for (; ; taken++) yield await Promise.resolve(Buffer.from(`${JSON.stringify({ id: String(taken) })}\n`))
  }
  const objects = parseObjects({ writableHighWaterMark: 200 })
  const source = Readable.from(endless())
  const piped = pipeline(source, objects)
  piped.catch(() => undefined)
  await once(objects, 'readable')
  await turns(100)
  assert.ok(taken < 100, `${taken} were taken`)
  objects.destroy(new Error('enough'))
  await assert.rejects(piped, /enough/)
  assert.ok(source.destroyed)
})

test('an error long after the end of the input reaches whoever reads', async () => {
  const failing = (): Duplex =>
    new BatchDuplex<Uint8Array, never>(failsLate, { readableObjectMode: true, writableObjectMode: false })
  async function* failsLate(source: AsyncIterable<Uint8Array>): AsyncGenerator<readonly never[]> {
    for await (const _ of source) yield []
    await turns(20)
    throw new Error('it has an end that fits nothing')
  }
  const input = (): Readable => Readable.from([Buffer.from('{}')])
  await assert.rejects(input().compose(failing()).toArray(), /fits nothing/)
  await assert.rejects(through([Buffer.from('{}')], failing()), /fits nothing/)
})
