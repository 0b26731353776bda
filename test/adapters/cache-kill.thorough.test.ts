import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { cachedBlobs } from '../../adapters/cache/index.ts'
import { filesystemBlobs } from '../../adapters/filesystem/index.ts'
import { MB } from '../../src/limits.ts'
import { testProcess } from '../support/child-process.ts'
import { folderInMemory } from '../support/folder.ts'

const ROUNDS = 4
const NAME = 'p/pack'
const SIZE = 30 * MB + 11

test('a cache that was killed at any moment gives no wrong byte, and the next process uses what it left', async (t) => {
  const source = folderInMemory(t)
  const blobs = filesystemBlobs({ path: source })
  const content = randomBytes(SIZE)
  await blobs.put(
    NAME,
    (async function* () {
      for (let at = 0; at < SIZE; at += MB) yield content.subarray(at, at + MB)
    })(),
  )
  const reads = { bytes: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const path = folderInMemory(t)
    const settings = { source, path, name: NAME, sizeBytes: SIZE, seed: round * 1_000 }
    const reader = testProcess(t, new URL('./read-cached.ts', import.meta.url), settings)
    for (let reads = 0; reads <= 5 * round; reads++) await reader.next()
    const exited = once(reader.child, 'exit')
    reader.child.kill('SIGKILL')
    await exited
    const counted = {
      readBytesPreferred: blobs.readBytesPreferred,
      place: blobs.place,
      put: blobs.put.bind(blobs),
      read: (name: string, start: number, end: number) => {
        reads.bytes += end - start
        return blobs.read(name, start, end)
      },
      remove: blobs.remove.bind(blobs),
      list: blobs.list.bind(blobs),
      close: async () => undefined,
    }
    const cached = cachedBlobs(counted, { path, sizeBytesMax: 64 * MB })
    for (let at = 0; at < SIZE; at += 4 * MB) {
      const end = Math.min(SIZE, at + 4 * MB)
      assert.ok(content.subarray(at, end).equals(await cached.read(NAME, at, end)), `round ${round}: bytes from ${at}`)
    }
    await cached.close()
    const files = readdirSync(path, { recursive: true, encoding: 'utf8' })
    assert.ok(!files.some((file) => file.endsWith('.tmp')), 'what the kill left is removed')
  }
  await blobs.close()
  assert.ok(reads.bytes < ROUNDS * SIZE, `${reads.bytes} bytes came from the source, and all must not`)
})
