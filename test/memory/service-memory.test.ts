import assert from 'node:assert/strict'
import { test } from 'node:test'
import { divideMemory } from '../../src/memory/service-memory.ts'

const PIECE_BYTES = 262_144

test('as much memory stays idle as requests leave, between two and five sixteenths of all', () => {
  const memoryBytesMax = 64 * PIECE_BYTES
  const { requests } = divideMemory(memoryBytesMax)
  const { bufferPool } = requests
  const idlePiecesAfterUse = (): number => {
    const lent = Array.from({ length: 32 }, () => bufferPool.takeAny(PIECE_BYTES))
    for (const bytes of lent) bufferPool.giveBack(bytes)
    return bufferPool.idleBytes / PIECE_BYTES
  }
  assert.equal(idlePiecesAfterUse(), 20)
  requests.count(requests.limitBytes - 3 * PIECE_BYTES)
  assert.equal(idlePiecesAfterUse(), 8 + 3)
  requests.count(10 * PIECE_BYTES)
  assert.equal(idlePiecesAfterUse(), 8)
})
