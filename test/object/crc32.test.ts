import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { crc32Combine } from '../../src/compression/crc32-combine.ts'

test('crc32Combine equals the CRC-32 of the concatenation for random splits', () => {
  for (let round = 0; round < 300; round++) {
    const bytes = randomBytes(randomInt(0, 70_000))
    const at = randomInt(0, bytes.length + 1)
    const combined = crc32Combine(crc32(bytes.subarray(0, at)), crc32(bytes.subarray(at)), bytes.length - at)
    assert.equal(combined, crc32(bytes), `${bytes.length} bytes split at ${at}`)
  }
})

test('lengths with zero bytes combine', () => {
  const zeros = new Uint8Array(1 << 17)
  const crcA = crc32('before')
  for (const length of [0, 1, 255, 256, 257, 65_535, 65_536, 65_537, 1 << 17]) {
    assert.equal(
      crc32Combine(crcA, crc32(zeros.subarray(0, length)), length),
      crc32(zeros.subarray(0, length), crcA),
      `${length}`,
    )
  }
})

test('lengths above 2^32 combine as the same bytes combined in parts', () => {
  const crcs = [crc32('a'), crc32('b'), crc32('c')]
  for (const [lengthB, lengthC] of [
    [2 ** 32, 7],
    [2 ** 40 + 12_345, 2 ** 33 + 1],
    [2 ** 52 + 3, 2 ** 51 + 9],
  ]) {
    const left = crc32Combine(crc32Combine(crcs[0], crcs[1], lengthB), crcs[2], lengthC)
    const right = crc32Combine(crcs[0], crc32Combine(crcs[1], crcs[2], lengthC), lengthB + lengthC)
    assert.equal(left, right)
  }
})
