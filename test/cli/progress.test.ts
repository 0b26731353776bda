import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasBar } from '../../src/cli/client/progress.ts'

test('a bar is drawn on terminals that can go back, and nowhere else', () => {
  assert.deepEqual(
    [
      hasBar({ isTTY: true }, { TERM: 'xterm' }),
      hasBar({ isTTY: true }, {}),
      hasBar({ isTTY: true }, { TERM: 'dumb' }),
      hasBar({}, { TERM: 'xterm' }),
    ],
    [true, true, false, false],
  )
})
