import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyMask, maskLines } from '../../src/inspect/mask.ts'
import type { AttributeMask } from '../../src/object/wire-types.ts'
import { inspectAll } from './inspecting.ts'
import { expectedOf } from './oracle.ts'
import { pick, randomObjectText, seeded } from './random-json.ts'

function masked(json: string, mask: AttributeMask): string {
  const line = Buffer.from(applyMask(Buffer.from(`some id\t${json}\n`), mask)).toString('utf8')
  assert.ok(line.startsWith('some id\t') && line.endsWith('\n'))
  return line.slice('some id\t'.length, -1)
}

test('include keeps named members and the id, and exclude drops named members but the id', () => {
  const json = '{"id":"a","x":1,"y":{"x":2},"z":[]}'
  assert.equal(masked(json, { include: ['y'] }), '{"id":"a","y":{"x":2}}')
  assert.equal(masked(json, { include: [] }), '{"id":"a"}')
  assert.equal(masked(json, { include: ['none'] }), '{"id":"a"}')
  assert.equal(masked(json, { exclude: ['x', 'id'] }), '{"id":"a","y":{"x":2},"z":[]}')
  assert.equal(masked(json, { exclude: [] }), json)
  assert.equal(masked('{}', { exclude: [] }), '{}')
})

test('members stay byte for byte', () => {
  assert.equal(
    masked('{ "x" : 1.0 , "big":123456789012345678901234567890,"y":"}, \\" " , "e":1E400 ,"id":"a" }', {
      exclude: ['none'],
    }),
    '{"x" : 1.0,"big":123456789012345678901234567890,"y":"}, \\" ","e":1E400,"id":"a"}',
  )
  assert.equal(masked('{"a":[1,2, 3 ] ,"id":"a"}', { include: ['a'] }), '{"a":[1,2, 3 ],"id":"a"}')
})

test('a key matches by its decoded text', () => {
  assert.equal(
    masked('{"\\u0069d":"a","\\u0078":1,"x":2,"\u00e9":3,"__proto__":4}', { include: ['x', 'é', '__proto__'] }),
    '{"\\u0069d":"a","\\u0078":1,"x":2,"é":3,"__proto__":4}',
  )
  assert.equal(
    masked('{"\\u0069d":"a","\\u0078":1,"\\ud800":2,"\\u00e9":3}', { exclude: ['x', 'é'] }),
    '{"\\u0069d":"a","\\ud800":2}',
  )
})

test('buffers may hold many lines, cut anywhere', async () => {
  const lines = (from: number, to: number): string =>
    Array.from({ length: to - from }, (_, i) => `i${from + i}\t{"id":"i${from + i}","n":${i},"keep":true}\n`).join('')
  const buffers = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.from(lines(0, 1_000))
    yield Buffer.from(lines(1_000, 1_001))
  }
  const out: Uint8Array[] = []
  for await (const buffer of maskLines(buffers(), { exclude: ['n'] })) out.push(buffer)
  assert.equal(out.length, 2)
  assert.equal(
    Buffer.concat(out).toString('utf8'),
    `${lines(0, 1_000)}${lines(1_000, 1_001)}`.replaceAll(/"n":\d+,/g, ''),
  )
})

test('every object keeps the values that its mask selects', async () => {
  const random = seeded(4)
  const texts = Array.from({ length: 4_000 }, () => randomObjectText(random)).filter(
    (text) => !('refused' in expectedOf(Buffer.from(text))),
  )
  const { objects } = await inspectAll(texts)
  for (const { json } of objects) {
    const names = [
      pick(random, ['a', 'x y', '__closure', '', 'é\u0085', 'id']),
      pick(random, ['referencedId', '\u2028', '__proto__']),
    ]
    const members = Object.entries(JSON.parse(json) as Record<string, unknown>)
    const kept = (wanted: (key: string) => boolean): unknown => members.filter(([key]) => key === 'id' || wanted(key))
    assert.deepEqual(
      Object.entries(JSON.parse(masked(json, { include: names })) as object),
      kept((key) => names.includes(key)),
      json,
    )
    assert.deepEqual(
      Object.entries(JSON.parse(masked(json, { exclude: names })) as object),
      kept((key) => !names.includes(key)),
      json,
    )
  }
})
