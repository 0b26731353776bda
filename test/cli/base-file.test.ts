import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { BaseFile } from '../../src/cli/client/base-file.ts'
import { newDataFolder } from './command.ts'

const never = new AbortController().signal

test('texts in a file of lines are found by id, regardless of chunks', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const texts = new Map(
    Array.from({ length: 3_000 }, (_, at) => [
      `id-${at}-ä`,
      `{"id":"id-${at}-ä","text":"${'€'.repeat((at * 37) % 500)}"}`,
    ]),
  )
  const lines = [...texts].map(([id, json]) => `${id}\t${json}\n`).join('')
  for (const [name, content] of [
    ['ends', lines],
    ['open', lines.slice(0, -1)],
  ] as const) {
    const path = join(folder, name)
    writeFileSync(path, content)
    await using file = await BaseFile.open(path, never)
    assert.deepEqual(await file.getMany([...texts.keys()]), [...texts.values()])
    assert.deepEqual(await file.getMany(['nobody', 'id-2999-ä']), [undefined, texts.get('id-2999-ä')])
  }
})

test('a file that is not made of lines is refused with the expected format', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const path = join(folder, 'file')
  for (const content of [
    '[{"id":"a"}]\n',
    '{"id":"a"}\n{"id":"b"}\n',
    gzipSync('a\t{"id":"a"}\n'),
    'x'.repeat(10_000),
    'a\t{}\nb',
  ]) {
    writeFileSync(path, content)
    await assert.rejects(
      BaseFile.open(path, never),
      { code: 'invalid_request', message: /is not a file of lines/ },
      String(content).slice(0, 20),
    )
  }
  await assert.rejects(BaseFile.open(join(folder, 'nowhere'), never), { code: 'invalid_request' })
  await assert.rejects(BaseFile.open(folder, never), { code: 'invalid_request', message: /is not a file/ })
  writeFileSync(path, '')
  await using empty = await BaseFile.open(path, never)
  assert.deepEqual(await empty.getMany(['a']), [undefined])
})
