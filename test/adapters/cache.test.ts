import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { type BlobCacheOptions, cachedBlobs } from '../../adapters/cache/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { MB } from '../../src/limits.ts'
import type { BlobStore } from '../../src/storage/backend.ts'
import { folderInMemory } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'

const NAME = 'p/pack'
const SIZE = 5 * MB + 123
const content: Buffer = randomBytes(SIZE)

interface Setting {
  readonly path: string
  readonly errors: unknown[]
  /** What the source was asked for, as `start-end`. */
  readonly reads: string[]
  /** The source answers when the function is called that this returns. */
  hold(): () => void
  /** The blobs behind a cache, as after a start. */
  open(options?: Partial<BlobCacheOptions>): BlobStore
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function setting(t: TestContext): Promise<Setting> {
  const path = folderInMemory(t)
  const { blobs } = memoryBackend()
  await blobs.put(NAME, once(content))
  const [errors, reads]: [unknown[], string[]] = [[], []]
  let held: Promise<void> | undefined
  const source: BlobStore = {
    readBytesPreferred: blobs.readBytesPreferred,
    put: blobs.put.bind(blobs),
    read: async (name, start, end, options) => {
      reads.push(`${start}-${end}`)
      await held
      const bytes = await blobs.read(name, start, end, options)
      const { into } = options ?? {}
      if (into === undefined) return bytes
      into.set(bytes)
      return into
    },
    remove: blobs.remove.bind(blobs),
    list: blobs.list.bind(blobs),
    close: async () => undefined,
  }
  const onError = (error: unknown): void => void errors.push(error)
  return {
    path,
    errors,
    reads,
    hold: () => {
      let release = (): void => undefined
      held = new Promise((resolve) => (release = resolve))
      return () => release()
    },
    open: (options) => cachedBlobs(source, { path, sizeBytesMax: 64 * MB, onError, ...options }),
  }
}

async function assertReads(blobs: BlobStore, start: number, end: number): Promise<void> {
  assert.ok(content.subarray(start, end).equals(await blobs.read(NAME, start, end)), `bytes ${start} to ${end}`)
}

/** A cache as after a start has everything: nothing is read from the source. */
async function assertKept(blobs: BlobStore, reads: string[]): Promise<void> {
  reads.length = 0
  await assertReads(blobs, 0, SIZE)
  assert.deepEqual(reads, [])
  await blobs.close()
}

function pieceFiles(path: string): string[] {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => /-\d+$/.test(name))
    .map((name) => join(path, name))
}

test('what was read once comes from the disk, in this process and after a restart', async (t) => {
  const { open, reads, errors } = await setting(t)
  const first = open()
  await assertReads(first, 0, 3 * MB + 5)
  await assertReads(first, 3 * MB + 5, SIZE)
  assert.deepEqual(reads, [`0-${3 * MB + 5}`, `${3 * MB + 5}-${SIZE}`], 'no byte is read twice')
  await first.close()
  const second = open()
  for (const [start, end] of [
    [0, SIZE],
    [MB - 1, MB + 1],
    [SIZE - 1, SIZE],
    [3 * MB, 3 * MB + 7],
  ])
    await assertReads(second, start, end)
  assert.equal(reads.length, 2, 'nothing was read from the source again')
  await second.close()
  assert.deepEqual(errors, [])
})

test('concurrent reads of the same bytes share one read of the source, and an aborted one leaves the others alone', async (t) => {
  const { open, reads } = await setting(t)
  const blobs = open()
  await blobs.ready?.()
  const controller = new AbortController()
  const reason = new Error('the caller went away')
  const aborted = blobs.read(NAME, 10, 2 * MB, { signal: controller.signal })
  const others = Array.from({ length: 5 }, () => assertReads(blobs, 10, 2 * MB))
  controller.abort(reason)
  await assert.rejects(aborted, (error) => error === reason)
  await Promise.all(others)
  assert.deepEqual(reads, [`0-${2 * MB}`])
  await blobs.close()
})

test('when the one whose read of the source it is goes away, the others read again', async (t) => {
  const { open, reads, hold } = await setting(t)
  const blobs = open()
  await blobs.ready?.()
  const answer = hold()
  const controller = new AbortController()
  const into = Buffer.alloc(2 * MB)
  const aborted = assert.rejects(blobs.read(NAME, 0, 2 * MB, { signal: controller.signal, into }), /went away/)
  await eventually(() => reads.length === 1, 'it is being read')
  const others = Array.from({ length: 3 }, () => assertReads(blobs, 0, 2 * MB))
  controller.abort(new Error('the caller went away'))
  answer()
  await aborted
  await Promise.all(others)
  assert.deepEqual(reads, [`0-${2 * MB}`, `0-${2 * MB}`])
  await blobs.close()
})

const NEIGHBOURS = [0, MB + 5, 2 * MB + 70, SIZE]
const ORDERS = { 'in their order': [0, 1, 2], 'the last one first': [2, 1, 0], 'the second one last': [0, 2, 1] }
for (const [name, order] of Object.entries(ORDERS))
  test(`neighbouring reads at the same time that end ${name} read no byte twice, and all of them are kept`, async (t) => {
    const { open, reads, errors, hold } = await setting(t)
    const first = open()
    await first.ready?.()
    const answers: (() => void)[] = []
    const reading: Promise<void>[] = []
    for (const [at, end] of NEIGHBOURS.slice(1).entries()) {
      answers.push(hold())
      reading.push(assertReads(first, NEIGHBOURS[at], end))
      await eventually(() => reads.length === at + 1, 'it is being read')
    }
    for (const at of order) {
      answers[at]()
      await reading[at]
    }
    assert.deepEqual(
      reads,
      NEIGHBOURS.slice(1).map((end, at) => `${NEIGHBOURS[at]}-${end}`),
    )
    await first.close()
    await assertKept(open(), reads)
    assert.deepEqual(errors, [])
  })

test('what a caller does with its memory after a read does not reach the cache, nor the others', async (t) => {
  const { open, reads, hold } = await setting(t)
  const blobs = open()
  await blobs.ready?.()
  const readAndChange = async (start: number, end: number): Promise<void> => {
    const bytes = await blobs.read(NAME, start, end, { into: Buffer.alloc(end - start) })
    assert.ok(content.subarray(start, end).equals(bytes))
    bytes.fill(0)
  }
  const middle = 3 * MB + 9
  const answerFirst = hold()
  const first = Array.from({ length: 4 }, () => readAndChange(0, middle))
  await eventually(() => reads.length === 1, 'the first part is being read')
  const answerSecond = hold()
  const second = readAndChange(middle, SIZE)
  await eventually(() => reads.length === 2, 'the second part is being read')
  answerFirst()
  await Promise.all(first)
  answerSecond()
  await second
  await blobs.close()
  await assertKept(open(), reads)
})

test('a torn, flipped or foreign piece is read from the source again', async (t) => {
  const { open, reads, path, errors } = await setting(t)
  const first = open()
  await assertReads(first, 0, SIZE)
  await first.close()
  const [cut, flipped, empty, grown, ...others] = pieceFiles(path)
  assert.equal(others.length, 2)
  truncateSync(cut, statSync(cut).size - 1)
  const bytes = readFileSync(flipped)
  bytes[bytes.length >> 1] ^= 1
  writeFileSync(flipped, bytes)
  truncateSync(empty, 0)
  writeFileSync(grown, Buffer.concat([readFileSync(grown), Buffer.from('more')]))
  writeFileSync(`${others[0]}.tmp`, 'torn')
  reads.length = 0
  const second = open()
  await assertReads(second, 0, SIZE)
  await assertReads(second, 0, SIZE)
  assert.ok(reads.length >= 1 && reads.length <= 4, reads.join())
  await second.close()
  assert.ok(!existsSync(`${others[0]}.tmp`), 'what a kill left is removed')
  // The damaged pieces were replaced.
  await assertKept(open(), reads)
  assert.deepEqual(errors, [])
})

test('removed blobs are gone, also those that are being read', async (t) => {
  const { open, reads, path } = await setting(t)
  const blobs = open()
  await assertReads(blobs, 0, MB)
  const reading = assertReads(blobs, MB, SIZE).catch(() => undefined)
  await blobs.remove([NAME])
  await reading
  await assert.rejects(blobs.read(NAME, 0, 10), { name: 'BlobNotFoundError' })
  await blobs.put(NAME, once(Buffer.alloc(SIZE, 7)))
  reads.length = 0
  assert.ok(Buffer.alloc(SIZE, 7).equals(await blobs.read(NAME, 0, SIZE)))
  assert.equal(reads.length, 1)
  await blobs.remove([NAME])
  await blobs.close()
  assert.deepEqual(pieceFiles(path), [])
})

test('the cache stays within its bytes, and what was used least recently gives way', async (t) => {
  const { open, reads, path } = await setting(t)
  const blobs = open()
  const names = Array.from({ length: 16 }, (_, at) => `q/${at}`)
  for (const name of names) await blobs.put(name, once(content))
  const diskBytes = (): number => pieceFiles(path).reduce((sum, file) => sum + statSync(file).size, 0)
  // What is read faster than the disk writes is not kept.
  const isKept = (name: string) => async (): Promise<boolean> => {
    reads.length = 0
    await blobs.read(name, 0, SIZE)
    return reads.length === 0
  }
  for (const name of names) {
    for (const used of [name, names[0]]) await eventually(isKept(used), `${used} is kept`)
    assert.ok(diskBytes() <= 64 * MB, `${diskBytes()} bytes`)
  }
  reads.length = 0
  await blobs.read(names[0], 0, SIZE)
  assert.deepEqual(reads, [], 'used all the time')
  await blobs.read(names[1], 0, SIZE)
  assert.notDeepEqual(reads, [], 'used long ago')
  await blobs.close()
})

test('errors of the cache disk are reported, and reads go to the source', async (t) => {
  const { open, path, errors, reads } = await setting(t)
  const blobs = open()
  await assertReads(blobs, 0, SIZE)
  await eventually(() => pieceFiles(path).length === 6, 'all pieces are written')
  for (const folder of readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    await rm(join(path, folder.name), { recursive: true })
    writeFileSync(join(path, folder.name), 'no folder')
  }
  reads.length = 0
  await assertReads(blobs, 0, SIZE)
  assert.deepEqual(reads, [`0-${SIZE}`])
  await blobs.close()
  assert.ok(errors.length > 0)
})

test('a folder that cannot be opened means no cache, and one that another process uses is refused', async (t) => {
  const { open, path, errors } = await setting(t)
  writeFileSync(join(path, 'file'), '')
  const without = open({ path: join(path, 'file', 'cache') })
  await assertReads(without, 0, SIZE)
  assert.equal(errors.length, 1)
  await without.close()
  const first = open()
  await first.ready?.()
  await assert.rejects(open().ready?.() ?? Promise.resolve(), /is in use by process \d+: give each its own/)
  await first.close()
  assert.throws(() => open({ sizeBytesMax: MB }), /sizeBytesMax of the cache is 1048576; it must be at least 67108864/)
})
