import assert from 'node:assert/strict'
import { readdirSync, readlinkSync, readSync } from 'node:fs'
import { mkdtemp, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { FileHandles } from '../../adapters/filesystem/file-handles.ts'
import { filesKeptOpen } from '../../adapters/filesystem/open-files.ts'
import { QuickReads } from '../../adapters/common/quick-reads.ts'

/** Reads whose time a test decides. */
function timedReads(): { readonly read: (tookMs: number) => string | undefined; pass(ms: number): void } {
  let nowMs = 0
  const quick = new QuickReads(() => nowMs)
  return {
    read: (tookMs) =>
      quick.tryNow(() => {
        nowMs += tookMs
        return 'read'
      }),
    pass: (ms) => (nowMs += ms),
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('quick reads take a part of one turn of the event loop, and go on in the next', async () => {
  const { read } = timedReads()
  const results = Array.from({ length: 10 }, () => read(1))
  assert.equal(results.filter((result) => result === 'read').length, 5, 'more than 4 ms end the share of the turn')
  await nextTurn()
  assert.equal(read(1), 'read')
})

test('after two slow reads in a row nothing is read for a while', async () => {
  const { read, pass } = timedReads()
  for (const tookMs of [3, 0.1, 3]) {
    assert.equal(read(tookMs), 'read')
    await nextTurn()
  }
  assert.equal(read(3), 'read')
  await nextTurn()
  pass(99)
  assert.equal(read(0.1), undefined)
  pass(1)
  assert.equal(read(0.1), 'read')
})

test('a read that fails is left to the thread pool', () => {
  const quick = new QuickReads()
  const fail = (): never => {
    throw new Error('a fault')
  }
  assert.equal(quick.tryNow(fail), undefined)
})

test('files that are read on the calling thread are closed when there are too many', async (t) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'stowage-handles-')))
  t.after(() => rm(folder, { recursive: true }))
  const handles = new FileHandles(2)
  const paths = Array.from({ length: 5 }, (_, at) => join(folder, String(at)))
  for (const [at, path] of paths.entries()) await writeFile(path, `file ${at}`)
  for (const [at, path] of [...paths, ...paths].entries()) {
    const bytes = Buffer.alloc(6)
    handles.useNow(path, (descriptor) => readSync(descriptor, bytes, 0, 6, 0))
    assert.equal(bytes.toString(), `file ${at % paths.length}`)
    assert.ok(openBelow(folder) <= 2)
  }
  await handles.close()
  assert.equal(openBelow(folder), 0)
})

test('a file that was opened on the calling thread is not opened again', async (t) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'stowage-handles-')))
  t.after(() => rm(folder, { recursive: true }))
  const handles = new FileHandles(2)
  const path = join(folder, 'a file')
  assert.throws(() => handles.openNow(path), { code: 'ENOENT' })
  await writeFile(path, 'its content')
  handles.openNow(path)
  handles.openNow(path)
  assert.equal(openBelow(folder), 1)
  await rename(path, join(folder, 'elsewhere'))
  const bytes = Buffer.alloc(11)
  await handles.use(path, (descriptor) => Promise.resolve(readSync(descriptor, bytes, 0, 11, 0)))
  assert.equal(bytes.toString(), 'its content')
  await handles.close()
  assert.equal(openBelow(folder), 0)
})

test('how many files stay open depends on the limit of the process', () => {
  const limits = (soft: string): string =>
    `Max processes  96365  96365  processes\nMax open files  ${soft}  1048576  files\n`
  assert.equal(filesKeptOpen(limits('1024')), 256)
  assert.equal(filesKeptOpen(limits('20000')), 2_500)
  assert.equal(filesKeptOpen(limits('1048576')), 4_096)
  assert.equal(filesKeptOpen('a table of another system'), 256)
  assert.ok(filesKeptOpen() >= 256)
})

/** Files of a folder that this process has open. */
function openBelow(folder: string): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => linkOf(descriptor).startsWith(folder)).length
}

/** The descriptor that listed the folder is closed by then. */
function linkOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}
