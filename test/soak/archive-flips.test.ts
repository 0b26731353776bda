import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { importWithFlips, smallArchive } from '../archive/flips.ts'

test('an archive with a flipped bit in any one of its bytes is refused before anything is sent', async (t) => {
  const path = await smallArchive(t)
  const { length } = await readFile(path)
  assert.equal(await importWithFlips(path, () => true), length)
})
