import { test } from 'node:test'
import { assertNothingIsLostInSilence } from './lost-files.ts'

/* The files that say which others count, and the log. test/processes/lost-files.test.ts does it to every file. */
test('a log, a manifest or a reference file that is removed or cut is reported', (t) =>
  assertNothingIsLostInSilence(t, 'filesystem', {
    cuts: (bytes) => [bytes >> 1],
    files: /^records\/(?:CURRENT|MANIFEST-\d+|\d+\.log|lengths)$/,
  }))
