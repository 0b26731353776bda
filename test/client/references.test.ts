import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deserialize, Origins, serialize } from '../../src/client/index.ts'
import { referencedIdsOf } from '../../src/client/common/references.ts'
import { canBeId } from '../object/oracle.ts'
import { inspectAll } from '../object/inspecting.ts'

type Members = Record<string, unknown>

/** References of every spelling, and what looks like one and is none. */
const VALUES: Readonly<Record<string, unknown>> = {
  typed: { speckle_type: 'reference', referencedId: 'typed' },
  bare: { referencedId: 'bare' },
  rich: { referencedId: 'rich', speckle_type: 'Objects.Wall', note: 'kept', within: { a: 1 } },
  nested: { deep: [[{ referencedId: 'nested' }]] },
  number: { referencedId: 7 },
  nothing: { referencedId: null },
  empty: { referencedId: '' },
  control: { referencedId: 'a\nb' },
  separator: { referencedId: 'a\u2028b' },
  longest: { referencedId: 'ä'.repeat(256) },
  tooLong: { referencedId: 'ä'.repeat(257) },
  text: 'referencedId',
}

test('the server and the client find the same references', async () => {
  const json = JSON.stringify({ id: 'root', ...VALUES })
  const { objects } = await inspectAll([json])
  const expected = ['typed', 'bare', 'rich', 'nested', 'ä'.repeat(256)].sort()
  assert.ok(expected.every(canBeId))
  assert.deepEqual([...objects[0].references].sort(), expected)
  assert.deepEqual([...referencedIdsOf({ id: 'root', json }).references].sort(), expected)
  for (const [name, value] of Object.entries(VALUES)) {
    const one = JSON.stringify({ id: 'root', [name]: value })
    assert.deepEqual(
      referencedIdsOf({ id: 'root', json: one }).references,
      (await inspectAll([one])).objects[0].references,
      name,
    )
  }
})

test('a received model has an object in place of each reference, and every reference counts when it is sent', async () => {
  const root = { id: 'root', ...VALUES }
  const children = ['typed', 'bare', 'rich', 'nested', 'ä'.repeat(256)].map((id) => ({ id, name: `this is ${id}` }))
  const texts = [root, ...children].map((object) => ({ id: object.id, json: JSON.stringify(object) }))
  const origins = new Origins()
  const received = await deserialize<Members & { nested: { deep: Members[][] } }>([texts], 'root', { origins })
  for (const name of ['typed', 'bare', 'rich']) assert.deepEqual(received[name], { id: name, name: `this is ${name}` })
  assert.equal(received.nested.deep[0][0].name, 'this is nested')
  for (const name of ['number', 'nothing', 'empty', 'control', 'separator', 'tooLong'])
    assert.deepEqual(received[name], VALUES[name], name)
  const again: string[] = []
  for await (const batch of serialize(received, { origins })) again.push(...batch.map(({ id }) => id))
  assert.deepEqual(again.sort(), texts.map(({ id }) => id).sort(), 'nothing has changed')
  await assert.rejects(deserialize([texts.filter(({ id }) => id !== 'bare')], 'root'), {
    code: 'objects_missing',
    ids: ['bare'],
  })
  const kept = await deserialize<Members>([texts.slice(0, 1)], 'root', { missing: 'keep' })
  assert.deepEqual(kept.rich, VALUES.rich)
})
