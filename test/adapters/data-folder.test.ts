import assert from 'node:assert/strict'
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { batchesOf } from '../../src/storage/conformance/case.ts'
import { DataFolderError, type DataFolderErrorCode } from '../../src/data-folder/data-folder-error.ts'
import { MARKER_FILE } from '../../src/data-folder/data-folder.ts'
import { folderHolder, LOCK_FILE } from '../../src/data-folder/folder-lock.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { chunks, fingerprint, key, text } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

const run = promisify(execFile)
const root = temporaryFolder()
const KINDS = { level: levelBackend, filesystem: filesystemBackend }

async function filledFolder(kind: keyof typeof KINDS, name: string): Promise<string> {
  const path = join(root, kind, name)
  await using(KINDS[kind]({ path }), async (backend) => {
    await backend.records.insertMany([{ key: key('a'), value: key('record') }])
    await backend.blobs.put('folder/blob', chunks('content'))
  })
  return path
}

async function using<T>(backend: StorageBackend, use: (backend: StorageBackend) => Promise<T>): Promise<T> {
  try {
    return await use(backend)
  } finally {
    await backend.close()
  }
}

async function isWhole(kind: keyof typeof KINDS, path: string): Promise<void> {
  await using(KINDS[kind]({ path }), async ({ records, blobs }) => {
    assert.equal(text((await records.getMany([key('a')]))[0]), 'record')
    assert.equal(text(await blobs.read('folder/blob', 0, 7)), 'content')
  })
}

/** Opening it must fail, by `ready` and by every first use, and leave every byte as it was. */
async function refuses(
  backend: () => StorageBackend,
  path: string,
  code: DataFolderErrorCode,
  message: RegExp,
): Promise<DataFolderError> {
  const before = await fingerprint(path)
  let refusal: unknown
  const refused = (error: unknown): boolean => {
    refusal = error
    return error instanceof DataFolderError && error.code === code && message.test(error.message)
  }
  await assert.rejects(
    using(backend(), async ({ ready }) => ready?.()),
    refused,
  )
  await assert.rejects(
    using(backend(), ({ records }) => records.getMany([key('a')])),
    refused,
  )
  await assert.rejects(
    using(backend(), ({ blobs }) => blobs.put('folder/other', chunks('x'))),
    refused,
  )
  assert.deepEqual(await fingerprint(path), before)
  return refusal as DataFolderError
}

async function fileLike(folder: string, pattern: RegExp): Promise<string> {
  const found = (await readdir(folder)).find((name) => pattern.test(name))
  assert.ok(found, `${folder} has a file like ${pattern}`)
  return join(folder, found)
}

interface Holder {
  readonly child: ChildProcess
  readonly ended: Promise<unknown>
}

async function holder(kind: keyof typeof KINDS, path: string): Promise<Holder> {
  const child = spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(new URL('hold-folder.ts', import.meta.url)), kind, path],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  assert.ok(child.stdout)
  const ended = once(child, 'exit')
  const said = await Promise.race([
    once(child.stdout, 'data'),
    ended.then(([code, signal]) => assert.fail(`the holder ended (${code}, ${signal})`)),
  ])
  assert.equal(String(said[0]), 'held\n')
  return { child, ended }
}

for (const kind of ['level', 'filesystem'] as const) {
  const other = kind === 'level' ? 'filesystem' : 'level'

  describe(`data folder of ${kind}`, () => {
    for (const missing of [/^CURRENT$/, /^MANIFEST-/, /\.log$/]) {
      test(`a folder without ${missing} of the database is refused`, async () => {
        const path = await filledFolder(kind, `missing-${missing.source.replaceAll(/\W/g, '')}`)
        const file = await fileLike(join(path, 'records'), missing)
        await rename(file, join(root, 'put-aside'))
        await refuses(() => KINDS[kind]({ path }), path, 'FOLDER_DAMAGED', /missing/)
        await rename(join(root, 'put-aside'), file)
        await isWhole(kind, path)
      })
    }

    test('a folder without its database is refused', async () => {
      const path = await filledFolder(kind, 'no-records')
      await rename(join(path, 'records'), join(root, 'records-aside'))
      await refuses(() => KINDS[kind]({ path }), path, 'FOLDER_DAMAGED', /CURRENT is missing/)
      await rename(join(root, 'records-aside'), join(path, 'records'))
      await isWhole(kind, path)
    })

    test('a folder with data and no marker is refused', async () => {
      const path = await filledFolder(kind, 'no-marker')
      const marker = await readFile(join(path, MARKER_FILE))
      await rm(join(path, MARKER_FILE))
      await refuses(() => KINDS[kind]({ path }), path, 'FOLDER_DAMAGED', /stowage\.json is missing/)
      await writeFile(join(path, MARKER_FILE), marker)
      await isWhole(kind, path)
    })

    test('a marker with any flipped bit is refused', async () => {
      const path = await filledFolder(kind, 'flipped')
      const marker = await readFile(join(path, MARKER_FILE))
      for (let at = 0; at < marker.length; at++) {
        const flipped = Buffer.from(marker)
        flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8))
        await writeFile(join(path, MARKER_FILE), flipped)
        await assert.rejects(
          using(KINDS[kind]({ path }), async ({ ready }) => ready?.()),
          DataFolderError,
        )
      }
      await writeFile(join(path, MARKER_FILE), marker)
      await isWhole(kind, path)
    })

    test('a folder of another kind or of a newer format is refused by name', async () => {
      const path = await filledFolder(kind, 'other-kind')
      await refuses(() => KINDS[other]({ path }), path, 'FOLDER_KIND', new RegExp(`kind ${kind}.*opened as ${other}`))
      const marker = await readFile(join(path, MARKER_FILE), 'utf8')
      await writeFile(join(path, MARKER_FILE), marker.replace('"format":2', '"format":3'))
      await refuses(() => KINDS[kind]({ path }), path, 'FOLDER_FORMAT', /format 2/)
      await writeFile(join(path, MARKER_FILE), marker)
      await isWhole(kind, path)
    })

    test('a second process is refused with the pid of the first one, and the writes of a killed holder remain', async () => {
      const path = await filledFolder(kind, 'second-process')
      const { child, ended } = await holder(kind, path)
      try {
        assert.equal((await folderHolder(path))?.pid, child.pid)
        const refusal = await refuses(
          () => KINDS[kind]({ path }),
          path,
          'FOLDER_HELD',
          new RegExp(`process ${child.pid} `),
        )
        assert.equal(refusal.holder?.pid, child.pid)
        // Without the file that names it, the lock of the database still holds.
        await rename(join(path, LOCK_FILE), join(root, 'lock-aside'))
        await assert.rejects(
          using(KINDS[kind]({ path }), async ({ ready }) => ready?.()),
          { code: 'FOLDER_HELD' },
        )
        await rename(join(root, 'lock-aside'), join(path, LOCK_FILE))
      } finally {
        child.kill('SIGKILL')
        await ended
      }
      assert.ok((await stat(join(path, LOCK_FILE))).isFile(), 'a killed process leaves its lock file')
      assert.equal(await folderHolder(path), undefined)
      await isWhole(kind, path)
      await using(KINDS[kind]({ path }), async ({ records }) =>
        assert.equal(text((await records.getMany([key('of the holder')]))[0]), 'kept'),
      )
    })

    test('a storage that is dropped without being closed neither ends the process nor warns', async () => {
      const path = await filledFolder(kind, 'dropped')
      const script = fileURLToPath(new URL('drop-folder.ts', import.meta.url))
      const { stdout, stderr } = await run(process.execPath, [...process.execArgv, '--expose-gc', script, kind, path])
      assert.deepEqual({ stdout, stderr }, { stdout: 'collected\n', stderr: '' })
      await isWhole(kind, path)
    })

    test('a lock file is ignored if its process is gone or its pid belongs to a later process', async () => {
      const path = await filledFolder(kind, 'stale-lock')
      const stale = {
        pid: process.pid,
        host: 'elsewhere',
        openedAt: new Date().toISOString(),
        incarnation: 'of another boot/1',
      }
      for (const content of [JSON.stringify(stale), JSON.stringify({ ...stale, pid: 2 ** 22 + 1 }), 'torn', '{}']) {
        await writeFile(join(path, LOCK_FILE), content)
        assert.equal(await folderHolder(path), undefined)
        await isWhole(kind, path)
      }
      await assert.rejects(stat(join(path, LOCK_FILE)), { code: 'ENOENT' })
    })

    test('a second backend in one process is refused, and a failed opening can be retried', async () => {
      const path = await filledFolder(kind, 'same-process')
      const [first, second] = [KINDS[kind]({ path }), KINDS[kind]({ path })]
      await first.ready?.()
      await assert.rejects(second.records.getMany([key('a')]), { code: 'FOLDER_HELD' })
      await first.close()
      await second.ready?.()
      assert.equal(text((await second.records.getMany([key('a')]))[0]), 'record')
      await second.close()
    })

    test('a creation that a crash interrupted is repeated', async () => {
      const path = await filledFolder(kind, 'creating')
      const marker = await readFile(join(path, MARKER_FILE), 'utf8')
      await writeFile(join(path, MARKER_FILE), marker.replace('ready', 'creating'))
      await rm(join(path, 'records'), { recursive: true })
      await using(KINDS[kind]({ path }), async ({ ready, records }) => {
        await ready?.()
        await records.insertMany([{ key: key('a'), value: key('record') }])
      })
      assert.equal(await readFile(join(path, MARKER_FILE), 'utf8'), marker)
      await isWhole(kind, path)
    })

    test('either half alone opens and closes the folder', async () => {
      const path = await filledFolder(kind, 'halves')
      const { records } = KINDS[kind]({ path })
      assert.equal(text((await records.getMany([key('a')]))[0]), 'record')
      await records.close()
      const { blobs } = KINDS[kind]({ path })
      assert.equal((await batchesOf(blobs.list(''))).length, 1)
      await blobs.close()
      await isWhole(kind, path)
    })

    test('only the owner can read the folder, even if it existed with other permissions', async () => {
      const path = await filledFolder(kind, 'private')
      const folders = kind === 'level' ? ['records', 'blobs'] : ['records', 'packs', 'incoming']
      const modes = async (): Promise<number[]> =>
        Promise.all(folders.map(async (name) => (await stat(join(path, name))).mode & 0o777))
      const closed = folders.map(() => 0o700)
      assert.deepEqual(await modes(), closed)
      for (const name of folders) await chmod(join(path, name), 0o755)
      await isWhole(kind, path)
      assert.deepEqual(await modes(), closed)
    })

    test('unknown files in the folder stay unchanged', async () => {
      const path = await filledFolder(kind, 'neighbours')
      await writeFile(join(path, 'tokens.json'), '{}')
      await isWhole(kind, path)
      assert.equal(await readFile(join(path, 'tokens.json'), 'utf8'), '{}')
    })
  })
}
