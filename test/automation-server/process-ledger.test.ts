import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { GROUP_SCRIPT } from '../../src/automation-server/runner/executors/isolation/launch-script.ts'
import { processHost, startTicksOf } from '../../src/automation-server/runner/executors/isolation/proc.ts'
import { ProcessGroup } from '../../src/automation-server/runner/executors/isolation/process-group.ts'
import { ProcessLedger } from '../../src/automation-server/runner/executors/isolation/process-ledger.ts'
import { eventually } from '../support/patience.ts'
import { temporaryFolder } from '../support/folder.ts'

const IS_LINUX = process.platform === 'linux'
const NO_PID = 2 ** 22 + 1

/** A process that is somebody else's. */
function stranger(t: TestContext): { readonly pid: number; readonly isThere: () => boolean } {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], {
    detached: true,
    stdio: 'ignore',
  })
  t.after(() => child.kill('SIGKILL'))
  return { pid: child.pid ?? 0, isThere: () => child.exitCode === null && child.signalCode === null }
}

async function recordOf(pid: number, changes: object = {}): Promise<object> {
  const startTicks = await startTicksOf(pid)
  return {
    host: await processHost(),
    serverPid: NO_PID,
    serverStartTicks: '1',
    pid,
    startTicks,
    mark: 'f'.repeat(32),
    ...changes,
  }
}

test(
  'a recorded process ends if its server is gone, but not if its pid was reused or its server lives',
  { skip: !IS_LINUX },
  async (t) => {
    const folder = temporaryFolder(t)
    const ledger = new ProcessLedger(folder)
    const [left, reused, served] = [stranger(t), stranger(t), stranger(t)]
    const records = {
      a: await recordOf(left.pid),
      b: await recordOf(reused.pid, { startTicks: '1' }),
      c: await recordOf(served.pid, { serverPid: process.pid, serverStartTicks: await startTicksOf(process.pid) }),
      d: await recordOf(served.pid, { host: 'another machine' }),
      e: await recordOf(served.pid, { pid: -1 }),
    }
    for (const [name, record] of Object.entries(records))
      await writeFile(join(folder, `${name.repeat(32)}.json`), JSON.stringify(record))
    await writeFile(join(folder, 'notes.txt'), 'not ours')
    assert.equal(await ledger.endLeftovers(), 1)
    await eventually(async () => !left.isThere(), 'the process that was left is gone')
    assert.deepEqual([reused.isThere(), served.isThere()], [true, true])
    const kept = (await readdir(folder)).map((name) => name.slice(0, 1)).sort()
    assert.deepEqual(kept, ['c', 'd', 'e', 'n'], 'records of others stay, until no run can be as old')
  },
)

test('a function runs no code before its process is recorded', { skip: !IS_LINUX }, async (t) => {
  const folder = temporaryFolder(t)
  const ledger = new ProcessLedger(folder)
  const mark = 'a'.repeat(32)
  let letGo: () => void = () => undefined
  const held = new Promise<void>((resolve) => (letGo = resolve))
  const starting = ProcessGroup.start({
    command: ['/bin/sh', '-c', GROUP_SCRIPT, 'function', '/bin/sh', '-c', `echo begun > ${folder}/begun`],
    cwd: folder,
    env: { STOWAGE_RUN_MARK: mark },
    mark,
    ledger: {
      add: async (pid, written) => {
        await ledger.add(pid, written)
        await held
      },
      remove: (written) => ledger.remove(written),
    },
  })
  await eventually(async () => (await readdir(folder)).includes(`${mark}.json`), 'it is written down')
  await wait(100)
  assert.deepEqual(await readdir(folder), [`${mark}.json`])
  letGo()
  const group = await starting
  assert.deepEqual(await group.exited, { code: 0, signal: null })
  await group.cleanUp(Promise.resolve())
  assert.deepEqual(await readdir(folder), ['begun'])
  assert.equal(await readFile(join(folder, 'begun'), 'utf8'), 'begun\n')
})

test('a process that cannot be recorded does not start', { skip: !IS_LINUX }, async (t) => {
  const folder = temporaryFolder(t)
  const full = async (): Promise<void> => {
    throw new Error('no space left')
  }
  const command = ['/bin/sh', '-c', GROUP_SCRIPT, 'function', '/bin/sh', '-c', `echo begun > ${folder}/begun`]
  const ledger = { add: full, remove: async (): Promise<void> => undefined }
  await assert.rejects(ProcessGroup.start({ command, cwd: folder, env: {}, mark: 'a', ledger }), /no space left/)
  await wait(100)
  assert.deepEqual(await readdir(folder), [])
})
