import assert from 'node:assert/strict'
import { test } from 'node:test'
import { upkeepSettingsOf } from '../../src/cli/server/upkeep-options.ts'
import { parsed } from './serve-options.ts'

const DAY_MS = 86_400_000

test('the periods of collections are settings of the server, also without a schedule', () => {
  const settings = (...args: readonly string[]): unknown => upkeepSettingsOf(parsed(...args)).collection
  assert.deepEqual(settings('--collect-older-than', '30d', '--collect-undo-within', '60d'), {
    everyMs: undefined,
    olderThanMs: 30 * DAY_MS,
    undoMs: 60 * DAY_MS,
  })
  assert.deepEqual(settings('--collect-every', '1d', '--collect-older-than', '0'), {
    everyMs: DAY_MS,
    olderThanMs: 0,
    undoMs: undefined,
  })
})
