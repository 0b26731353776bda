import assert from 'node:assert/strict'
import { test } from 'node:test'
import { propertyRuns } from '../support/runs.ts'
import { type Inspected, inspectAll, refusalOf } from './inspecting.ts'
import { type Expected, expectedOf } from './oracle.ts'
import { injured, randomObjectText, seeded } from './random-json.ts'

const VALID_DOCUMENTS: number = propertyRuns(2_000)
const INJURED_DOCUMENTS: number = propertyRuns(4_000)
const RAW_LINE_BREAKS = /[\t\r\n\u0085\u2028\u2029]/

test('valid documents yield the lines, ids, references and claims that JSON.parse and the rules give', async () => {
  const random = seeded(1)
  const texts: string[] = []
  const expected: Expected[] = []
  for (let i = 0; i < VALID_DOCUMENTS; i++) {
    const text = randomObjectText(random)
    const outcome = expectedOf(Buffer.from(text))
    if ('refused' in outcome) {
      assert.equal((await refusalOf(text))?.code, outcome.refused, JSON.stringify(text))
      continue
    }
    texts.push(text)
    expected.push(outcome)
  }
  assert.ok(texts.length > VALID_DOCUMENTS / 2)
  const { objects } = await inspectAll(texts)
  assert.equal(objects.length, texts.length)
  for (const [i, object] of objects.entries()) {
    assertAsExpected(object, expected[i], texts[i])
    assert.doesNotMatch(object.json, RAW_LINE_BREAKS)
    const { id, ...rest } = JSON.parse(object.json) as Record<string, unknown>
    assert.equal(id, object.id)
    const { id: _, ...sent } = JSON.parse(texts[i]) as Record<string, unknown>
    assert.deepEqual(rest, sent)
  }
})

test('damaged documents are accepted exactly if JSON.parse accepts them after a fatal decoder', async () => {
  const random = seeded(2)
  const counts: Record<string, number> = {}
  for (let i = 0; i < INJURED_DOCUMENTS; i++) {
    const bytes = injured(random, Buffer.from(randomObjectText(random)))
    const expected = expectedOf(bytes)
    const outcome = 'refused' in expected ? expected.refused : 'accepted'
    counts[outcome] = (counts[outcome] ?? 0) + 1
    const shown = JSON.stringify(Buffer.from(bytes).toString('latin1'))
    if ('refused' in expected) {
      const code = (await refusalOf(bytes))?.code
      // What neither starts with a brace nor is JSON breaks both rules; either name is right.
      const alsoRight = expected.refused === 'invalid_json' && bytes[0] !== 0x7b ? 'invalid_object' : expected.refused
      assert.ok(code === expected.refused || code === alsoRight, `${code}, not ${expected.refused}: ${shown}`)
    } else assertAsExpected((await inspectAll([bytes])).objects[0], expected, shown)
  }
  for (const outcome of ['accepted', 'invalid_json', 'invalid_utf8', 'invalid_object', 'invalid_id'])
    assert.ok(counts[outcome] > 20, `${outcome}: ${counts[outcome]}`)
})

function assertAsExpected(object: Inspected, expected: Expected, text: string): void {
  assert.ok(!('refused' in expected))
  assert.equal(object.json, expected.json, text)
  assert.equal(object.id, expected.id, text)
  assert.deepEqual(object.references, expected.references, text)
  assert.deepEqual([...new Set(object.claims)].sort(), [...expected.claims].sort(), text)
}
