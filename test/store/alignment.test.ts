import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedChildren, ChildIds } from '../../src/store/delta/alignment.ts'
import type { PackTables } from '../../src/store/pack/pack-format.ts'

/** The one object of a pack, which refers to these ids outside of it. */
function childrenOf(ids: readonly string[]): ChildIds {
  let end = 0
  const externals = { ends: Uint32Array.from(ids, (id) => (end += id.length)), bytes: Buffer.from(ids.join('')) }
  const references = { ends: Uint32Array.of(ids.length), targets: Uint32Array.from(ids.keys()) }
  return new ChildIds({ objects: 0, externals, references } as unknown as PackTables, 0)
}

function changes(older: readonly string[], newer: readonly string[]): (string | undefined)[] {
  return [...changedChildren(childrenOf(older), childrenOf(newer))].map((pair) =>
    pair === undefined ? undefined : `${newer[pair[0]]} was ${older[pair[1]]}`,
  )
}

function letters(text: string): string[] {
  return text.split('')
}

test('objects between the same neighbours are matched', () => {
  assert.deepEqual(changes(letters('abcdef'), letters('abcdef')), [])
  assert.deepEqual(changes(letters('abcdef'), letters('aBCdeF')), ['B was b', 'C was c', 'F was f'])
  assert.deepEqual(changes(letters('abcdef'), letters('abXcDef')), ['D was d'])
  assert.deepEqual(changes(letters('abcdef'), letters('acdeF')), ['F was f'])
  assert.deepEqual(changes(letters('abc'), letters('ABCDE')), ['A was a', 'B was b', 'C was c'])
  assert.deepEqual(changes([], letters('abc')), [])
  assert.deepEqual(changes(letters('abc'), []), [])
})

test('a comparison of very many children yields to other work', () => {
  const older = Array.from({ length: 20_000 }, (_, at) => `o${at};`)
  for (const newer of [older, older.map((id) => `n${id}`), older.map((id, at) => (at % 40 === 0 ? `n${id}` : id))]) {
    const found = changes(older, newer)
    const breaths = found.filter((pair) => pair === undefined).length
    assert.ok(breaths >= 20_000 / 1_024, `${breaths} breaths`)
    assert.equal(found.length - breaths, newer.filter((id, at) => id !== older[at]).length)
  }
})
