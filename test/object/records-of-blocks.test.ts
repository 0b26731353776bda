import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toObjectRecords } from '../../src/object/line.ts'

test('records of blocks outlive the memory of their lines, which is used again', () => {
  const lines = Buffer.from('a\t{"id":"a"}\n')
  const ends = Uint32Array.of(0)
  const batch = {
    count: 1,
    lines,
    lineBytes: Uint32Array.of(lines.length),
    idBytes: Uint16Array.of(1),
    names: new Uint8Array(0),
    nameEnds: new Uint32Array(0),
    referenceEnds: ends,
    claimEnds: ends,
    blocks: [],
  }
  const [record] = toObjectRecords(batch)
  lines.fill(0)
  assert.equal(Buffer.from(record.json).toString(), '{"id":"a"}')
})
