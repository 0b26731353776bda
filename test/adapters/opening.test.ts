import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { DataFolderError, openingError } from '../../src/data-folder/data-folder-error.ts'
import { describeFailure } from '../../src/cli/common/exit.ts'
import { chunks, key } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

/* What the system may have against opening a folder: each reason is told with what to do about it. */

const root = temporaryFolder()
const run = promisify(execFile)
const KINDS = { level: levelBackend, filesystem: filesystemBackend }
const SCRIPT = fileURLToPath(new URL('refuse-to-open.ts', import.meta.url))
const isSuperuser = process.getuid?.() === 0

async function fill(kind: keyof typeof KINDS, path: string): Promise<void> {
  const backend = KINDS[kind]({ path })
  await backend.records.insertMany([{ key: key('a'), value: key('record') }])
  await backend.blobs.put('folder/blob', chunks('content'))
  await backend.close()
}

async function refusal(kind: keyof typeof KINDS, path: string): Promise<DataFolderError> {
  const backend = KINDS[kind]({ path })
  try {
    await backend.ready?.()
  } catch (error) {
    assert.ok(error instanceof DataFolderError, String(error))
    return error
  } finally {
    await backend.close()
  }
  throw new assert.AssertionError({ message: `${path} was opened` })
}

/** A tmpfs; only the superuser of a Linux may have one. */
async function disk(t: TestContext, name: string): Promise<string | undefined> {
  const path = join(root, name)
  await mkdir(path)
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', path])
  } catch {
    t.skip('needs the right to mount a tmpfs')
    return undefined
  }
  t.after(() => run('umount', [path]))
  return path
}

for (const kind of ['filesystem', 'level'] as const) {
  test(`${kind}: a read-only file system is reported`, async (t) => {
    const path = await disk(t, `read-only-${kind}`)
    if (path === undefined) return
    await fill(kind, join(path, 'data'))
    await run('mount', ['-o', 'remount,ro', path])
    const error = await refusal(kind, join(path, 'data'))
    assert.equal(error.code, 'FOLDER_READ_ONLY')
    assert.match(error.message, /is on a read-only file system.*mount it writable/)
  })

  test(`${kind}: missing permissions are reported`, async () => {
    const path = join(root, `denied-${kind}`)
    await fill(kind, path)
    await chmod(root, 0o755)
    if (!isSuperuser) await chmod(join(path, 'records'), 0)
    const { stdout } = await run(process.execPath, [...process.execArgv, SCRIPT, kind, path, 'nobody'])
    await chmod(join(path, 'records'), 0o700)
    assert.match(stdout, /^FOLDER_DENIED the user .* may not use the data folder .* \(at [^)]+\); .* "chown -R" /)
  })

  test(`${kind}: too few file descriptors are reported`, { skip: process.platform === 'win32' }, async () => {
    const path = join(root, `few-${kind}`)
    await fill(kind, path)
    const limited = ['-c', 'ulimit -n 80 && exec "$0" "$@"', process.execPath, ...process.execArgv, SCRIPT]
    const { stdout } = await run('sh', [...limited, kind, path, 'files'])
    assert.match(stdout, /^TOO_MANY_FILES .* as many files open as it may; .*"ulimit -n"/)
  })

  test(`${kind}: a file in place of the folder is reported`, async () => {
    const path = join(root, `file-${kind}`)
    await writeFile(path, '')
    const error = await refusal(kind, path)
    assert.equal(error.code, 'FOLDER_UNUSABLE')
    assert.match(error.message, /something on its path is not a folder/)
  })
}

test('messages say more than the engine does, and errors of the host pass unchanged', () => {
  const level = (code: string, message: string): Error =>
    Object.assign(new Error('Database failed to open', { cause: Object.assign(new Error(message), { code }) }), {
      code: 'LEVEL_DATABASE_NOT_OPEN',
    })
  const said = (error: Error): string => describeFailure(openingError('/data', error))
  assert.match(
    said(level('LEVEL_IO_ERROR', 'IO error: /data/records/LOCK: Read-only file system')),
    /^the data folder \/data is on a read-only.*\(at \/data\/records\/LOCK\)/,
  )
  assert.match(said(level('LEVEL_IO_ERROR', 'IO error: /data/records/LOCK: No locks available')), /without locks/)
  assert.match(
    said(level('LEVEL_IO_ERROR', 'IO error: /data/records/000009.log: No space left on device')),
    /disk is full/,
  )
  assert.match(said(level('LEVEL_CORRUPTION', 'Corruption: bad record')), /"stowage reindex"/)
  const own = new Error('permission denied by the host')
  assert.equal(openingError('/data', own), own)
})
