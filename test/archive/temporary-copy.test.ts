import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryCopy } from '../../src/archive/temporary-copy.ts'
import { temporaryFolder } from '../support/folder.ts'

const ITEMS = Array.from({ length: 5_000 }, (_, number) => ({
  number,
  text: `line\u2028${'x'.repeat(number % 300)}\n`,
}))

async function* items(): AsyncGenerator<(typeof ITEMS)[number]> {
  yield* ITEMS
}

test('items can be read more than once, and a process that is killed leaves nothing of them', async (t) => {
  const before = process.env.TMPDIR
  const folder = temporaryFolder(t)
  process.env.TMPDIR = folder
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  })
  const copy = await temporaryCopy(items())
  assert.deepEqual(readdirSync(folder), [], 'the file has no name any more')
  for (let reading = 0; reading < 2; reading++) {
    const read: unknown[] = []
    for await (const item of copy.items()) read.push(item)
    assert.deepEqual(read, ITEMS)
  }
  await copy.remove()
})
