import { test } from 'node:test'
import { assertNothingIsLostInSilence } from './lost-files.ts'

/* The files that say which others count, and the log. test/processes/lost-files.test.ts does it to every file. */
test('the log, the manifest and what names them removed or cut', (t) =>
  assertNothingIsLostInSilence(t, 'filesystem', {
    cuts: (bytes) => [bytes >> 1],
    files: /^records\/(?:CURRENT|MANIFEST-\d+|\d+\.log|lengths)$/,
  }))
