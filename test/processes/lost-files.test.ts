import { assertNothingIsLostInSilence } from '../crash/lost-files.ts'
import { test } from 'node:test'

for (const storage of ['filesystem', 'level'] as const) {
  test(`each removed or cut file of a data folder is handled: ${storage}`, (t) =>
    assertNothingIsLostInSilence(t, storage, { cuts: (bytes) => [0, bytes >> 1, bytes - 1], files: /^/ }))
}
