import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomId, REAL_ENVIRONMENT } from '../src/environment.ts'

test('random bytes have the size that was asked for, differ each time, and belong to the caller', () => {
  const given: { readonly bytes: Uint8Array; readonly as: string }[] = []
  for (const size of Array.from({ length: 2_000 }, (_, i) => 16 + (i % 60))) {
    const bytes = REAL_ENVIRONMENT.randomBytes(size)
    assert.equal(bytes.length, size)
    given.push({ bytes, as: Buffer.from(bytes).toString('hex') })
  }
  for (const { bytes, as } of given) assert.equal(Buffer.from(bytes).toString('hex'), as)
  assert.equal(new Set(given.map(({ as }) => as.slice(0, 32))).size, given.length)
  assert.match(randomId(REAL_ENVIRONMENT), /^[0-9a-f]{32}$/)
})
