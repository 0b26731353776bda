import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { decodeHeader, encodeHeader, END_BYTES, paddingOf } from '../../src/archive/tar.ts'
import { temporaryFolder } from '../support/folder.ts'

test('tar reads the written archive', async (t) => {
  const path = join(temporaryFolder(t), 'some.tar')
  const entries = [
    ['one.json', '{}\n'],
    ['folder/00000001.txt', 'x'.repeat(512)],
    ['folder/empty', ''],
  ] as const
  const blocks = entries.flatMap(([name, text]) => [
    encodeHeader({ name, sizeBytes: text.length }),
    Buffer.from(text),
    Buffer.alloc(paddingOf(text.length)),
  ])
  await writeFile(path, Buffer.concat([...blocks, Buffer.alloc(END_BYTES)]))
  const tar = promisify(execFile)
  assert.deepEqual(
    (await tar('tar', ['--list', '--file', path])).stdout.trim().split('\n'),
    entries.map(([name]) => name),
  )
  for (const [name, text] of entries)
    assert.equal((await tar('tar', ['--extract', '--to-stdout', '--file', path, name])).stdout, text)
})

test('a header decodes to its fields, and a header with a changed byte is refused', () => {
  const header = { name: 'objects/00000001.txt.gz', sizeBytes: 4_000_000_000 }
  const block = encodeHeader(header)
  assert.deepEqual(decodeHeader(block), header)
  block[3] ^= 1
  assert.equal(decodeHeader(block), undefined)
  assert.equal(decodeHeader(Buffer.alloc(512)), 'end')
  assert.throws(() => encodeHeader({ name: 'x'.repeat(101), sizeBytes: 1 }), RangeError)
  assert.throws(() => encodeHeader({ name: 'ä', sizeBytes: 1 }), RangeError)
})
