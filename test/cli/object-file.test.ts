import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { openObjectFile } from '../../src/cli/client/object-file.ts'
import { JsonObjects } from '../../src/cli/client/json-objects.ts'
import { RootFinder } from '../../src/cli/client/roots.ts'
import type { ObjectText } from '../../src/client/index.ts'
import { newDataFolder } from './command.ts'

/** Texts that a reader which goes through values would change. */
const EXACT: readonly string[] = [
  '{"id":"a","n":1e400,"z":-0,"k":1.00,"big":12345678901234567890123}',
  String.raw`{"z":1,"a":2,"id":"b","s":"\u00e9\/é\ud83d\ude00 } ] [ { \" \\","10":1,"9":2}`,
  '{ "id" : "c" ,\n  "nested": {"id": "not mine", "list": [1, [2, {"id": 3}]]} }',
  `{"id":"d","long":"${'x{}'.repeat(40_000)}"}`,
]
const IDS: readonly string[] = ['a', 'b', 'c', 'd']

async function readAll(t: TestContext, content: string | Uint8Array): Promise<ObjectText[]> {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  writeFileSync(join(folder, 'file'), content)
  const { objects } = await openObjectFile(join(folder, 'file'), new AbortController().signal)
  const all: ObjectText[] = []
  for await (const batch of objects) all.push(...batch)
  return all
}

test('objects are read character by character from every file format', async (t) => {
  const oneLine = EXACT.map((text) => text.replaceAll('\n', ''))
  const forms: Record<string, readonly [string, readonly string[]]> = {
    array: [` [\n${EXACT.join(' ,\n')}\n] \n`, EXACT],
    'array with a byte order mark': [`\ufeff[${EXACT.join(',')}]`, EXACT],
    'one after the other': [EXACT.join('\n'), EXACT],
    'without anything between': [EXACT.join(''), EXACT],
    lines: [oneLine.map((text, at) => `${IDS[at]}\t${text}\n`).join(''), oneLine],
    'lines without an end': [oneLine.map((text, at) => `${IDS[at]}\t${text}`).join('\r\n'), oneLine],
  }
  for (const [name, [content, texts]] of Object.entries(forms)) {
    const expected = texts.map((json, at) => ({ id: IDS[at], json }))
    assert.deepEqual(await readAll(t, content), expected, name)
    assert.deepEqual(await readAll(t, gzipSync(content)), expected, `${name}, gzipped`)
  }
  for (const nothing of ['', ' \n', '[]', ' [ ] ']) assert.deepEqual(await readAll(t, nothing), [])
})

test('any chunking of a file gives the same objects', () => {
  const text = `[${EXACT.slice(0, 3).join(', ')}]`
  for (const size of [1, 2, 3, 7, 50]) {
    const reader = new JsonObjects('array')
    const found: string[] = []
    for (let at = 0; at < text.length; at += size)
      found.push(...reader.push(text.slice(at, at + size)).map(({ json }) => json))
    reader.end()
    assert.deepEqual(found, EXACT.slice(0, 3), `pieces of ${size}`)
  }
})

test('an object without an id gets the id that the server would assign', async (t) => {
  const [{ id, json }, named, empty] = await readAll(t, '[{"a": 1.0,\n\t"b":2}, {"id":"x"}, { }]')
  const text = '{"a": 1.0,"b":2}'
  assert.equal(id, hash('sha256', text).slice(0, 32))
  assert.equal(json, `{"id":"${id}",${text.slice(1)}`)
  assert.deepEqual(named, { id: 'x', json: '{"id":"x"}' })
  assert.deepEqual(JSON.parse(empty.json), { id: empty.id })
})

test('a file that does not contain objects is refused with the place', async (t) => {
  const refused: readonly (readonly [string | Uint8Array, string, RegExp])[] = [
    [
      '[{"id":"a"},{"id":"b",}]',
      'invalid_json',
      /^object 2 of the file, which starts with .*id.*b.*, cannot be read: it is not JSON/,
    ],
    ['[{"id":"a"}', 'invalid_json', /^object 2 .*the file ends before the array is closed/],
    ['[{"id":"a"},{"id":', 'invalid_json', /^object 2 .*the file ends in the middle of it/],
    ['[{"id":"a"}]]', 'invalid_json', /not JSON/],
    ['[{"id":"a"},{"id":"b","n":1', 'invalid_json', /^object 2 .*the file ends in the middle of it/],
    ['[{"id":"a"},{"id":"b","t":"line\nline"}]', 'invalid_json', /^object 2 .*not JSON: Bad control character/],
    ['{"id":"a"}\n5', 'invalid_json', /^object 2 .*each must be an object/],
    [`{"id":"a","deep":${'['.repeat(200_000)}`, 'invalid_json', /nests deeper than/],
    ['[1]', 'invalid_json', /each must be an object/],
    ['[[{"id":"a"}]]', 'invalid_json', /it is an array/],
    ['[{"id":7}]', 'invalid_json', /its id is not a string/],
    ['{"id":"a"}\n{"id":{}}', 'invalid_json', /^object 2 .*its id is not a string/],
    ['a\t{"id":"a"}\nb\t{"id":"c"}\n', 'invalid_json', /^line 2 .*does not have the id "b"/],
    ['a\t{"id":"a"}\nb {"id":"b"}\n', 'invalid_json', /^line 2 .*not an id, a tab and an object/],
    [Buffer.from('[{"id":"\xff"}]', 'latin1'), 'invalid_utf8', /not UTF-8/],
    [gzipSync('[{"id":"a"}]').subarray(0, 20), 'invalid_gzip', /incomplete or damaged/],
  ]
  for (const [content, code, message] of refused)
    await assert.rejects(readAll(t, content), { code, message }, String(content))
  await assert.rejects(readAll(t, `${' '.repeat(600_000)}x`), { code: 'invalid_json' })
  await assert.rejects(openObjectFile(join(newDataFolder(t), 'none'), new AbortController().signal), {
    code: 'invalid_request',
    message: /there is no file/,
  })
})

test('the roots are the objects without a parent, regardless of the order', () => {
  const texts: ObjectText[] = ['leaf', 'left', 'right', 'top', 'alone'].map((id) => {
    const children = { left: ['leaf'], right: ['leaf', 'right'], top: ['left', 'right'] }[id] ?? []
    return {
      id,
      json: JSON.stringify({
        id,
        text: '"referencedId":"alone"',
        children: children.map((referencedId) => ({ referencedId })),
      }),
    }
  })
  for (const order of [texts, texts.toReversed()]) {
    const finder = new RootFinder()
    for (const object of order) finder.add(object)
    const { roots, count } = finder.find(10)
    assert.deepEqual([roots.toSorted(), count], [['alone', 'top'], 2])
    assert.deepEqual(finder.find(1).count, 2)
    assert.equal(finder.find(1).roots.length, 1)
  }
})
