import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { inflateRawSync } from 'node:zlib'
import { inflateFragments } from '../../src/compression/inflate.ts'
import { storedFragment } from '../../src/compression/stored-fragment.ts'

test('a stored fragment inflates to its bytes, alone and before another one', async () => {
  for (const length of [0, 1, 65_534, 65_535, 65_536, 131_070, 200_000]) {
    const raw = randomBytes(length)
    const fragment = storedFragment(raw)
    assert.deepEqual(await inflateFragments(fragment, length), raw, `${length} bytes`)
    const both = Buffer.concat([fragment, storedFragment(Buffer.from('behind')), Buffer.of(3, 0)])
    assert.deepEqual(inflateRawSync(both), Buffer.concat([raw, Buffer.from('behind')]))
  }
})
