import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createObjectService, openAccess } from '../../src/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
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

test('a downloaded file names its root with the digest that the server has for it', async (t) => {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  const path = join(folder, 'down.txt')
  const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
  const project = service.project('p')
  const objects = Array.from({ length: 3_000 }, (_, at) => ({ id: `ä${at}`, below: { referencedId: `ä${at + 1}` } }))
  await project.upload(Readable.from([Buffer.from(JSON.stringify(objects))]), 'application/json')
  const answer = await service.fetch(
    new Request('http://host/objects/p/ä0', { headers: { accept: 'text/plain', 'accept-encoding': 'identity' } }),
  )
  const lines = await answer.text()
  const have = `ä0@${answer.headers.get('stowage-closure')}`
  for (const content of [lines, lines.trimEnd(), lines + lines]) {
    writeFileSync(path, content)
    await using file = await BaseFile.open(path, never)
    assert.equal(file.have, have)
  }
  writeFileSync(path, lines.replace('ä7', 'ä8'))
  await using changed = await BaseFile.open(path, never)
  assert.notEqual(changed.have, have)
  await service.close()
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
  assert.equal(empty.have, undefined)
})
