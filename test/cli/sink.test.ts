import assert from 'node:assert/strict'
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type FileSink, fileSink } from '../../src/cli/client/sink.ts'
import { newDataFolder } from './command.ts'

function newFolder(t: TestContext): string {
  const folder = newDataFolder(t)
  mkdirSync(folder)
  return folder
}

async function write(path: string, text: string): Promise<FileSink> {
  const sink = await fileSink(path)
  await sink.write(text)
  await sink.finish()
  await sink.close()
  return sink
}

test('a file appears once it is complete and replaces the target of a link, not the link', async (t) => {
  const folder = newFolder(t)
  writeFileSync(join(folder, 'old.txt'), 'old')
  mkdirSync(join(folder, 'links'))
  symlinkSync(join(folder, 'old.txt'), join(folder, 'links', 'link.txt'))
  const sink = await fileSink(join(folder, 'links', 'link.txt'))
  await sink.write('ne')
  assert.equal(readFileSync(join(folder, 'old.txt'), 'utf8'), 'old')
  await sink.write('w')
  await sink.finish()
  await sink.close()
  assert.equal(readFileSync(join(folder, 'old.txt'), 'utf8'), 'new')
  assert.deepEqual([lstatSync(join(folder, 'links', 'link.txt')).isSymbolicLink(), sink.isRegular], [true, true])
  const left = await fileSink(join(folder, 'left.txt'))
  await left.write('a part')
  await left.close()
  assert.deepEqual(readdirSync(folder).toSorted(), ['links', 'old.txt'])
})

test(
  'output to a device goes to the device, without a temporary file beside it',
  { skip: process.platform === 'win32' },
  async (t) => {
    const folder = newFolder(t)
    symlinkSync('/dev/null', join(folder, 'nothing'))
    assert.equal((await write(join(folder, 'nothing'), 'text')).isRegular, false)
    assert.deepEqual(
      [
        readdirSync(folder),
        lstatSync(join(folder, 'nothing')).isSymbolicLink(),
        lstatSync('/dev/null').isCharacterDevice(),
      ],
      [['nothing'], true, true],
    )
  },
)

test('a folder or a path in a missing folder is refused before any request', async (t) => {
  const folder = newFolder(t)
  await assert.rejects(fileSink(folder), { code: 'invalid_request', message: /is a folder; name the file to write/ })
  await assert.rejects(fileSink(join(folder, 'none', 'file.txt')), {
    code: 'invalid_request',
    message: /there is no folder ".*none"/,
  })
  assert.deepEqual(readdirSync(folder), [])
})
