import assert from 'node:assert/strict'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { closeDatabase, openBlobsDatabase } from '../../adapters/level/database.ts'
import { chunkKey, newBlobId, pendingKey } from '../../adapters/level/blob-keys.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { noise } from '../../src/storage/conformance/blob-context.ts'
import { batchesOf } from '../../src/storage/conformance/case.ts'
import { chunks } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

const root = temporaryFolder()

test('filesystem: opening removes files that a crash left incomplete', async () => {
  const path = join(root, 'files')
  const first = filesystemBackend({ path })
  await first.blobs.put('kept', chunks('content'))
  await first.close()
  await writeFile(join(path, 'incoming', 'half'), noise(100))
  await writeFile(join(path, 'packs', 'no-blob.tmp'), noise(100))
  const second = filesystemBackend({ path })
  assert.deepEqual(
    (await batchesOf(second.blobs.list(''))).map(({ name }) => name),
    ['kept'],
  )
  assert.deepEqual(await readdir(join(path, 'incoming')), [])
  await second.close()
})

test('filesystem: a failed put leaves no file', async () => {
  const path = join(root, 'failing')
  const { blobs, close } = filesystemBackend({ path })
  const failing = async function* (): AsyncGenerator<Uint8Array> {
    yield noise(2_000_000)
    throw new Error('the producer failed')
  }
  await assert.rejects(blobs.put('folder/blob', failing()), /the producer failed/)
  assert.deepEqual(await readdir(join(path, 'incoming')), [])
  assert.deepEqual(await batchesOf(blobs.list('')), [])
  await close()
})

test('filesystem: a truncated file is an error, never fewer bytes', async () => {
  const path = join(root, 'short')
  const { blobs, close } = filesystemBackend({ path })
  await blobs.put('blob', chunks(noise(10_000)))
  await blobs.read('blob', 0, 10)
  await writeFile(join(path, 'packs', 'blob.blob'), noise(5_000))
  await assert.rejects(blobs.read('blob', 4_000, 6_000), /up to byte 6000: it has 5000 bytes/)
  await close()
})

test('filesystem: a list skips symbolic links among the blobs', async () => {
  const path = join(root, 'links')
  await mkdir(join(root, 'outside'))
  const { blobs, close } = filesystemBackend({ path })
  await blobs.put('blob', chunks('x'))
  await symlink(join(root, 'outside'), join(path, 'packs', 'linked'))
  assert.deepEqual(
    (await batchesOf(blobs.list(''))).map(({ name }) => name),
    ['blob'],
  )
  await close()
})

test('level: opening removes unnamed chunks that a crash left', async () => {
  const path = join(root, 'level')
  const first = levelBackend({ path })
  const content = noise(1_500_000)
  await first.blobs.put('kept', chunks(content))
  await first.close()

  const opened = await openBlobsDatabase(join(path, 'blobs'), { createIfMissing: false })
  const { database } = opened
  const keysBefore = (await database.keys().all()).length
  const id = newBlobId()
  await database.batch([
    { type: 'put', key: pendingKey(id), value: new Uint8Array(0) },
    ...[0, 1, 2].map((at) => ({ type: 'put' as const, key: chunkKey(id, at), value: noise(100) })),
  ])
  await closeDatabase(opened)

  const second = levelBackend({ path })
  await second.ready?.()
  assert.deepEqual(
    (await batchesOf(second.blobs.list(''))).map(({ name }) => name),
    ['kept'],
  )
  assert.deepEqual(Buffer.from(await second.blobs.read('kept', 0, 1_500_000)), Buffer.from(content))
  await second.close()

  const looked = await openBlobsDatabase(join(path, 'blobs'), { createIfMissing: false })
  assert.equal((await looked.database.keys().all()).length, keysBefore)
  await closeDatabase(looked)
})

test('level: a failed put and a removed blob leave no key', async () => {
  const path = join(root, 'level-failing')
  const { blobs, close } = levelBackend({ path })
  const failing = async function* (): AsyncGenerator<Uint8Array> {
    yield noise(3_000_000)
    throw new Error('the producer failed')
  }
  await assert.rejects(blobs.put('failed', failing()), /the producer failed/)
  await blobs.put('removed', chunks(noise(3_000_000)))
  await blobs.put('empty', chunks())
  await blobs.remove(['removed', 'empty'])
  await close()
  const opened = await openBlobsDatabase(join(path, 'blobs'), { createIfMissing: false })
  const { database } = opened
  assert.deepEqual(await database.keys().all(), [])
  await closeDatabase(opened)
})
