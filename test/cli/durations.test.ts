import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationSeconds, durationSecondsOrNone } from '../../src/cli/common/options.ts'
import { parsed } from './serve-options.ts'

test('a duration is a whole number and a unit, up to a thousand years', () => {
  for (const parse of [durationSeconds, durationSecondsOrNone]) {
    assert.deepEqual(['90s', '15m', '12h', '30d'].map(parse), [90, 900, 43_200, 2_592_000])
    assert.equal(parse('366000d'), 366_000 * 86_400)
    for (const long of ['366001d', '100000000d', '999999999999999d'])
      assert.throws(() => parse(long), /It must be 366000d or less\./, long)
    for (const wrong of ['', '14', '-1d', '1.5h', '1w', '0x1s'])
      assert.throws(() => parse(wrong), /a whole number(, at least 1,)? and a unit: 90s, 15m, 12h or 30d\./, wrong)
  }
})

test('where a duration may be nothing, 0 has any unit or none; elsewhere it is refused', () => {
  for (const none of ['0', '0s', '0m', '0h', '0d', '00d']) {
    assert.equal(durationSecondsOrNone(none), 0)
    assert.throws(() => durationSeconds(none), /It must be a whole number, at least 1, and a unit/)
    assert.equal(parsed('--compact-every', none).compactEvery, 0)
  }
  assert.throws(() => durationSecondsOrNone('14'), /It must be 0, or a whole number and a unit: 90s, 15m, 12h or 30d\./)
  assert.throws(() => parsed('--compact-every', '25d'), /It must be 24 days at most\./)
})
