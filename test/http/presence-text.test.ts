import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { presenceBytes, presenceText } from '../../src/http/presence-text.ts'
import { IdSet } from '../../src/object/id-set.ts'
import { bothCores, idList, jsonUpload } from './served.ts'

const AWKWARD_IDS: readonly string[] = ['', 'a', '"', '\\', '\\"', '\n\t\u0000\u001f', 'é', '漢字', '😀', '__proto__']

test('the announced length of a diff is that of its text, which parses to the ids', async () => {
  const many = Array.from({ length: 20_000 }, (_, index) => `"${index}\n`)
  for (const ids of [[], ['a'], AWKWARD_IDS, many]) {
    const held = Uint8Array.from(ids, (_, index) => (index % 3) & 1)
    const text = await buffer(presenceText(setOf(ids), held))
    assert.equal(presenceBytes(setOf(ids), held), text.length)
    const expected = ids.map((id, index) => [id, held[index] === 1])
    assert.deepEqual(Object.entries(JSON.parse(text.toString()) as object), expected)
  }
})

test('a diff of more ids than can be counted quickly has no announced length', () => {
  const ids = setOf(Array.from({ length: 20_000 }, (_, index) => `${index}`.padEnd(60)))
  assert.equal(presenceBytes(ids, new Uint8Array(ids.size)), undefined)
})

test('the response to a diff has its length, so that a client notices a lost part', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await (await ask('/objects/p', jsonUpload([{ id: 'a' }]))).arrayBuffer()
    const response = await ask('/api/diff/p', idList(['a', 'b"']))
    const text = await response.text()
    assert.equal(text, '{"a":true,"b\\"":false}', core)
    assert.equal(response.headers.get('content-length'), String(text.length), core)
  }
})

function setOf(ids: readonly string[]): IdSet {
  const set = new IdSet()
  for (const id of ids) {
    const bytes = Buffer.from(id)
    set.add(bytes, 0, bytes.length)
  }
  return set
}
