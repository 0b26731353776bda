import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspectBatches } from '../../src/inspect/inspect.ts'
import { toObjectRecords } from '../../src/object/line.ts'
import { asBatches, elementsOf, never } from './inspecting.ts'

test('records hold the texts, each name once', async () => {
  const texts = [
    '{"id":"é","x":[{"referencedId":"b"},{"referencedId":"b"},{"referencedId":"ü"}],"__closure":{"b":1,"c":2,"c":3}}',
    '{"id":"b"}',
    '{"id":"c","__closure":{"d":1}}',
  ]
  const records = []
  for await (const batch of inspectBatches(asBatches([elementsOf(texts)]), { nestingMax: 10 }, { signal: never }))
    records.push(...toObjectRecords(batch))
  assert.deepEqual(
    records.map(({ id, json, references, claims }) => ({
      id,
      json: Buffer.from(json).toString('utf8'),
      references,
      claims,
    })),
    [
      { id: 'é', json: texts[0], references: ['b', 'ü'], claims: ['c'] },
      { id: 'b', json: texts[1], references: [], claims: [] },
      { id: 'c', json: texts[2], references: [], claims: ['d'] },
    ],
  )
})
