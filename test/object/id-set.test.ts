import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdSet } from '../../src/object/id-set.ts'

const IDS = 10_001

test('a trimmed set holds the same ids in what they need, and takes more', () => {
  const set = new IdSet()
  for (let n = 0; n < IDS; n++) set.add(Buffer.from(`id-${n}`))
  set.reserve(IDS + 1, set.idBytes + 1)
  const grownBytes = set.memoryBytes
  assert.equal(set.trim(), set)
  assert.equal(set.memoryBytes, IdSet.tablesBytes(IDS) + set.idBytes)
  assert.ok(set.memoryBytes < grownBytes)
  for (let n = 0; n < IDS; n++) assert.equal(set.find(Buffer.from(`id-${n}`)), n)
  assert.equal(set.add(Buffer.from('later')), IDS)
  assert.equal(set.find(Buffer.from('later')), IDS)
  assert.equal(set.stringAt(IDS), 'later')
})

test('an empty set can be trimmed', () => {
  const set = new IdSet().trim()
  assert.equal(set.find(Buffer.from('a')), -1)
  assert.equal(set.add(Buffer.from('a')), 0)
  assert.equal(set.find(Buffer.from('a')), 0)
})
