import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Level } from 'level'
import { FileBlobs, type FilesPart } from '../../adapters/filesystem/file-blobs.ts'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { FolderSyncs } from '../../adapters/filesystem/folder-syncs.ts'
import { WriteGuard } from '../../adapters/common/write-guard.ts'
import { closeDatabase } from '../../adapters/level/database.ts'
import { RecordedLengths } from '../../adapters/level/recorded-lengths.ts'
import { SortedReader } from '../../adapters/level/sorted-reader.ts'
import { LevelRecords } from '../../adapters/level/level-records.ts'
import { LevelWriter } from '../../adapters/level/level-writer.ts'
import { Semaphore } from '../../src/async/semaphore.ts'
import type { BlobStore, RecordStore } from '../../src/storage/backend.ts'
import type { BlobDriver, RecordDriver } from '../../src/storage/driver.ts'
import { guardedBackend } from '../../src/storage/guard.ts'
import { isStorageError } from '../../src/storage/storage-errors.ts'
import { syncFolder } from '../../src/data-folder/durable-files.ts'
import { noise } from '../../src/storage/conformance/blob-context.ts'
import { batchesOf } from '../../src/storage/conformance/case.ts'
import { chunks, key, text } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'
import { turns } from '../support/patience.ts'

const root = temporaryFolder()
const run = promisify(execFile)

/** A real LevelDB whose next synced write can be made to fail, as a failing disk does, and that counts its batches. */
class FailingLevel extends Level<Uint8Array, Uint8Array> {
  failure: Error | undefined
  batches = 0

  override batch(): never {
    const batch = super.batch()
    this.batches++
    const { failure } = this
    if (failure) batch.write = () => batch.close().then(() => Promise.reject(failure))
    return batch as never
  }
}

const nothing = {} as RecordDriver & BlobDriver

async function failingRecords(
  name: string,
): Promise<{ database: FailingLevel; records: RecordStore; guard: WriteGuard }> {
  const database = new FailingLevel(join(root, name), { keyEncoding: 'buffer', valueEncoding: 'buffer' })
  await database.open()
  const guard = new WriteGuard(root)
  const reader = new SortedReader(database)
  const lengths = await RecordedLengths.start(database.location)
  const writer = new LevelWriter({ database, reader, lengths }, { guard, syncs: new Semaphore(2), sync: true })
  const { records } = guardedBackend({
    open: async () => ({
      records: new LevelRecords({ database, reader, writer }),
      blobs: nothing,
      close: () => closeDatabase({ database, reader, lengths }),
    }),
  })
  return { database, guard, records }
}

async function failingFiles(
  name: string,
  failures: { file?: Error; folder?: Error },
): Promise<{ blobs: BlobStore; part: FilesPart }> {
  const syncs = new Semaphore(2)
  const folders = new FolderSyncs(syncs, async (path) =>
    failures.folder ? Promise.reject(failures.folder) : syncFolder(path),
  )
  const syncFile: FilesPart['syncFile'] = async (file) => (failures.file ? Promise.reject(failures.file) : file.sync())
  const part = {
    root: join(root, name, 'packs'),
    incoming: join(root, name, 'incoming'),
    guard: new WriteGuard(root),
    syncs,
    folders,
    syncFile,
  }
  await mkdir(part.root, { recursive: true })
  await mkdir(part.incoming)
  return { part, blobs: guardedFiles(part) }
}

function guardedFiles(part: FilesPart): BlobStore {
  const blobs = new FileBlobs(part)
  return guardedBackend({ open: async () => ({ records: nothing, blobs, close: () => blobs.close() }) }).blobs
}

/** The code of the engine's own error, which the guard keeps as the cause. */
function causedBy(code: string): (error: unknown) => boolean {
  return (error) => ((error as Error).cause as NodeJS.ErrnoException).code === code
}

const POISONED = { name: 'StoragePoisonedError', code: 'storage_unavailable' }

test('records: a failed write rejects all its callers and all later writes, and reads continue', async () => {
  const { database, records } = await failingRecords('poisoned')
  await records.insertMany([{ key: key('before'), value: key('kept') }])
  database.failure = Object.assign(new Error('IO error: 000003.log: Input/output error'), { code: 'LEVEL_IO_ERROR' })
  const writes = await Promise.allSettled(
    [1, 2, 3].map((at) => records.insertMany([{ key: key(`lost ${at}`), value: key('x') }])),
  )
  for (const write of writes)
    assert.ok(write.status === 'rejected' && (write.reason as Error).cause === database.failure)
  database.failure = undefined
  const poisoned = (error: unknown): boolean =>
    isStorageError(error, 'StoragePoisonedError') &&
    ((error as Error).cause as Error).message.includes('Input/output error')
  await assert.rejects(records.insertMany([{ key: key('after'), value: key('x') }]), poisoned)
  await assert.rejects(records.commit({ remove: [key('before')] }), poisoned)
  assert.equal(text((await records.getMany([key('before')]))[0]), 'kept')
  assert.equal((await batchesOf(records.range({ gte: key(''), lt: key('z') }))).length, 1)
  await records.close()
})

test('records: system errors become their codes, and too many open files do not block later writes', async () => {
  const { database, records } = await failingRecords('codes')
  database.failure = new Error('IO error: 000005.log: Too many open files')
  await assert.rejects(records.insertMany([{ key: key('a'), value: key('1') }]), causedBy('EMFILE'))
  database.failure = undefined
  assert.deepEqual(await records.insertMany([{ key: key('a'), value: key('2') }]), [undefined])
  database.failure = new Error('IO error: 000005.log: No space left on device')
  await assert.rejects(records.insertMany([{ key: key('b'), value: key('1') }]), causedBy('ENOSPC'))
  database.failure = undefined
  await assert.rejects(records.insertMany([{ key: key('b'), value: key('1') }]), POISONED)
  await records.close()
})

test('records: concurrent calls share a batch, and a large call is split', async () => {
  const { database, records } = await failingRecords('groups')
  await Promise.all(
    Array.from({ length: 200 }, (_, at) => records.insertMany([{ key: key(`together ${at}`), value: key('x') }])),
  )
  assert.ok(database.batches <= 3, `200 calls took ${database.batches} batches`)
  database.batches = 0
  await records.insertMany(Array.from({ length: 4_500 }, (_, at) => ({ key: key(`large ${at}`), value: key('x') })))
  assert.equal(database.batches, 5)
  database.batches = 0
  await records.insertMany(Array.from({ length: 64 }, (_, at) => ({ key: key(`heavy ${at}`), value: noise(65_536) })))
  assert.ok(database.batches >= 4, `4 MiB took ${database.batches} batches`)
  await records.close()
})

test('records: an abort releases a queued call while the one before it finishes', async () => {
  const { records } = await failingRecords('aborts')
  const controller = new AbortController()
  const first = records.insertMany(
    Array.from({ length: 900 }, (_, at) => ({ key: key(`first ${at}`), value: key('x') })),
  )
  const second = records.insertMany(
    Array.from({ length: 900 }, (_, at) => ({ key: key(`second ${at}`), value: key('x') })),
    { signal: controller.signal },
  )
  await turns(1)
  controller.abort(new Error('gone'))
  await first
  await second.then(
    () => undefined,
    (error: unknown) => assert.equal(error, controller.signal.reason),
  )
  const left = await batchesOf(records.range({ gte: key('second'), lt: key('t') }))
  assert.ok(left.length === 0 || left.length === 900)
  await records.close()
})

test('files: a failed sync of a file or a folder leaves no blob and blocks later writes, and reads continue', async () => {
  for (const where of ['file', 'folder'] as const) {
    const failures: { file?: Error; folder?: Error } = {}
    const { blobs, part } = await failingFiles(`sync-${where}`, failures)
    await blobs.put('folder/before', chunks('kept'))
    failures[where] = Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' })
    await assert.rejects(blobs.put('folder/lost', chunks('x')), causedBy('EIO'))
    failures[where] = undefined
    await assert.rejects(blobs.put('folder/after', chunks('x')), POISONED)
    await assert.rejects(blobs.remove(['folder/before']), POISONED)
    await assert.rejects(blobs.read('folder/lost', 0, 1), { name: 'BlobNotFoundError', code: 'corrupt_data' })
    assert.equal(text(await blobs.read('folder/before', 0, 4)), 'kept')
    assert.deepEqual(await readdir(part.incoming), [])
    await blobs.close()
  }
})

test('files: at most two syncs run at once, and concurrent puts share the sync of their folder', async () => {
  const syncs = new Semaphore(2)
  const [now, most, folderSyncs] = [{ count: 0 }, { count: 0 }, { count: 0 }]
  const slowly = async (): Promise<void> => {
    most.count = Math.max(most.count, ++now.count)
    await turns(2)
    now.count--
  }
  const folders = new FolderSyncs(syncs, async () => {
    folderSyncs.count++
    await slowly()
  })
  const { part } = await failingFiles('two-syncs', {})
  const blobs = guardedFiles({ ...part, syncs, folders, syncFile: slowly })
  await Promise.all(Array.from({ length: 30 }, (_, at) => blobs.put(`folder/${at}`, chunks('x'))))
  assert.equal(most.count, 2)
  assert.ok(folderSyncs.count < 30, `30 puts into one folder synced folders ${folderSyncs.count} times`)
  folderSyncs.count = 0
  for (let at = 30; at < 35; at++) await blobs.put(`folder/${at}`, chunks('x'))
  assert.equal(folderSyncs.count, 5)
  await blobs.close()
})

for (const kind of ['filesystem', 'level']) {
  test(
    `${kind}: too many open files are a temporary error with its own code`,
    { skip: process.platform === 'win32' },
    async () =>
      assert.equal(
        await withOpenFiles(80, new URL('few-files.ts', import.meta.url), [kind, join(root, `few-${kind}`)]),
        'recovered\n',
      ),
  )
}

test(
  'filesystem: the number of open files is bounded, and closing leaves none',
  { skip: process.platform !== 'linux' },
  async () =>
    assert.equal(
      await withOpenFiles(2_048, new URL('kept-files.ts', import.meta.url), [join(root, 'kept')]),
      'closed\n',
    ),
)

/** What a script prints in a process that may have so many files open. */
async function withOpenFiles(limit: number, script: URL, parameters: readonly string[]): Promise<string> {
  const limited = `ulimit -n ${limit} && exec "$0" "$@"`
  const command = [process.execPath, ...process.execArgv, fileURLToPath(script), ...parameters]
  return (await run('sh', ['-c', limited, ...command])).stdout
}

/** A file system of its own, small enough to fill; only the superuser of a Linux may have one. */
async function smallDisk(
  name: string,
  megabytes: number,
): Promise<{ path: string; free: () => Promise<unknown> } | undefined> {
  const path = join(root, name)
  await mkdir(path)
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path])
    return { path, free: () => run('umount', [path]) }
  } catch {
    return undefined
  }
}

test('a full disk refuses writes with ENOSPC, keeps stored data, and accepts writes once there is room', async (context) => {
  const disk = await smallDisk('full', 32)
  if (!disk) {
    context.skip('needs the right to mount a tmpfs')
    return
  }
  const backend = filesystemBackend({ path: join(disk.path, 'data'), diskReserveBytes: 4_194_304 })
  try {
    const names: string[] = []
    const fill = async (): Promise<void> => {
      for (;;) {
        await backend.blobs.put(`b/${names.length}`, chunks(noise(3_000_000)))
        names.push(`b/${names.length}`)
        // Free space is looked at ten times a second.
        await delay(110)
      }
    }
    await assert.rejects(fill(), { code: 'storage_full' })
    assert.ok(names.length >= 5)
    assert.deepEqual(await readdir(join(disk.path, 'data', 'incoming')), [])
    assert.equal((await batchesOf(backend.blobs.list('b/'))).length, names.length)
    // The reserve is for the records: they go on when blobs do not.
    assert.deepEqual(await backend.records.commit({ put: [{ key: key('a'), value: key('kept') }] }), { ok: true })
    for (const name of names) assert.equal((await backend.blobs.read(name, 0, 3_000_000)).length, 3_000_000)
    await backend.blobs.remove(names.slice(0, 2))
    await delay(110)
    assert.deepEqual(await backend.blobs.put('again', chunks(noise(3_000_000))), { sizeBytes: 3_000_000 })
  } finally {
    await backend.close()
    await disk.free()
  }
})

test('a full disk without a reserve keeps every acknowledged record', async (context) => {
  const disk = await smallDisk('full-records', 24)
  if (!disk) {
    context.skip('needs the right to mount a tmpfs')
    return
  }
  const options = { path: join(disk.path, 'data'), diskReserveBytes: 0 }
  const first = filesystemBackend(options)
  const acknowledged: Uint8Array[] = []
  const fill = async (): Promise<void> => {
    await first.blobs.put('ballast', chunks(noise(8_000_000)))
    for (;;) {
      const entry = { key: key(`record ${acknowledged.length}`), value: noise(60_000) }
      await first.records.insertMany([entry])
      acknowledged.push(entry.key)
    }
  }
  try {
    await assert.rejects(fill(), { code: 'storage_full' })
    assert.ok(acknowledged.length > 20)
    await assert.rejects(first.records.insertMany([{ key: key('later'), value: key('x') }]), POISONED)
    assert.ok((await first.records.getMany(acknowledged)).every((value) => value?.length === 60_000))
    await first.close()
    await run('mount', ['-o', 'remount,size=64m', disk.path])
    const second = filesystemBackend(options)
    assert.ok((await second.records.getMany(acknowledged)).every((value) => value?.length === 60_000))
    assert.deepEqual(await second.records.insertMany([{ key: key('later'), value: key('x') }]), [undefined])
    await second.close()
  } finally {
    await first.close()
    await disk.free()
  }
})
