import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import type { OpenStorage } from '../../src/cli/client/copy-storage.ts'
import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { refuseUnfinished } from '../../src/storage/maintenance-watch.ts'
import { assertSame, copySource } from '../cli/copying.ts'
import { temporaryFolder } from '../support/folder.ts'

const WORKER = fileURLToPath(new URL('./copy-worker.ts', import.meta.url))
const OBJECTS = 400
/** Rounds go on for longer and longer, so that the last one comes to the end. */
const CHANGES_MORE = 3

test('a copy that is killed again and again goes on, and is complete in the end', async (t) => {
  const folder = temporaryFolder(t)
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  const opened = filesystemBackend({ path: from })
  const made = await copySource(t, OBJECTS, opened, from)
  await opened.close()
  let kills = 0
  for (let changes = 1; ; changes += CHANGES_MORE) {
    const worker = fork(WORKER, [from, to, String(changes)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    const [[code, signal], errors] = await Promise.all([
      once(worker, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
      worker.stderr === null ? '' : text(worker.stderr),
    ])
    if (code === 0) break
    assert.equal(signal, 'SIGKILL', errors)
    kills++
    if (changes === 1) continue
    const half = filesystemBackend({ path: to })
    await assert.rejects(refuseUnfinished(half.records), { code: 'maintenance' }, `after ${changes} changes`)
    await half.close()
  }
  assert.ok(kills >= 3, `${kills} kills`)
  const open = (path: string): OpenStorage => ({
    backend: filesystemBackend({ path }),
    credentials: folderCredentials(path),
    place: path,
  })
  const [source, target] = [open(from), open(to)]
  await refuseUnfinished(target.backend.records)
  await assertSame({ ...made, ...source }, target)
  await Promise.all([source.backend.close(), target.backend.close()])
})
