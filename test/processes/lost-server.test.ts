import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { RunFile } from '../../src/automation/runtime/index.ts'
import { eventually, inTime } from '../support/patience.ts'
import { type AutomationServer, automationServer, isAlive } from './automation-server.ts'
import { temporaryFolder } from '../support/folder.ts'

/** A lease that a machine with much else to do renews in time, too. */
const SOON = { leaseMs: 4_000, sweepIntervalMs: 200, isolation: 'off' } as const

/** What was given to the run of a server, from the private folder that it has made for it. */
async function runFileOf({ process: { pid } }: AutomationServer): Promise<RunFile> {
  const name = (await readdir(tmpdir())).find((folder) => folder.startsWith(`stowage-run-${pid}-`))
  return JSON.parse(await readFile(join(tmpdir(), name ?? '', 'run.json'), 'utf8')) as RunFile
}

/** Of every process that runs the function's file with that run file. */
async function processesOf(pid: number | undefined): Promise<readonly number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    const command = /^\d+$/.test(name) ? await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '') : ''
    if (command.includes(`stowage-run-${pid}-`)) found.push(Number(name))
  }
  return found
}

async function killed(server: AutomationServer): Promise<void> {
  const gone = once(server.process, 'exit')
  server.process.kill('SIGKILL')
  await inTime(gone, 'the killed server is gone')
}

suite('a server that dies during a run', { concurrency: 2 }, () => {
  for (const functionId of ['here', 'there']) {
    test(`killed, with a run ${functionId}: the run times out, and nothing of it continues`, async (t) => {
      const folder = temporaryFolder(t)
      const first = await automationServer(t, { folder, ...SOON })
      const id = await first.start(functionId, { what: 'ignore' })
      await first.until(id, ({ progress }) => progress !== null)
      const processes = await processesOf(first.process.pid)
      assert.equal(processes.length > 0, functionId === 'there')
      await killed(first)
      await eventually(
        async () => (await Promise.all(processes.map(isAlive))).every((alive) => !alive),
        "the function's process has noticed, and is gone",
      )
      const second = await automationServer(t, { folder, ...SOON })
      const run = await second.ended(id)
      assert.deepEqual(
        [run.status, run.message, run.annotations.INFO],
        ['timeout', `the run was silent for ${SOON.leaseMs} ms: it was lost`, 1],
      )
      const again = await second.ask<{ id: string }>('POST', `runs/${id}/rerun`)
      await second.ask('POST', `runs/${again.id}/cancel`)
    })
  }

  test('killed, with a program that notices nothing: its lease expires, and all its later requests are refused', async (t) => {
    const folder = temporaryFolder(t)
    const first = await automationServer(t, { folder, ...SOON })
    const id = await first.start('deaf')
    await eventually(async () => (await first.logs(id)).length > 0, 'it has begun')
    const processes = await processesOf(first.process.pid)
    const { speckleToken } = await runFileOf(first)
    await killed(first)
    await eventually(
      async () => (await Promise.all(processes.map(isAlive))).every((alive) => !alive),
      'the program has noticed nothing, and is gone',
    )
    const second = await automationServer(t, { folder, ...SOON })
    const told = async (what: string, body: object): Promise<number> => {
      const answer = await fetch(`${second.url}/api/v1/projects/demo/runs/${id}/${what}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${speckleToken}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      return answer.status
    }
    await eventually(async () => {
      await told('lease', {})
      return (await second.run(id)).status === 'timeout'
    }, 'the run is a time-out, though it asks for its lease')
    assert.equal(await told('report', { sequence: 50, status: 'succeeded', message: 'late' }), 409)
    assert.equal(await told('versions', {}), 401)
    assert.equal((await second.run(id)).status, 'timeout')
  })

  for (const isolation of ['off', 'auto'] as const)
    test(`stopped, isolation ${isolation}: the run is an exception, its process is gone, and the next server claims pending runs`, async (t) => {
      const folder = temporaryFolder(t)
      const first = await automationServer(t, { folder, concurrency: 2, isolation })
      const ids = [await first.start('here', { what: 'obey' }), await first.start('there', { what: 'obey' })]
      for (const id of ids) await first.until(id, ({ progress }) => progress !== null)
      const waiting = await first.start('there', { what: 'succeed' })
      const processes = await processesOf(first.process.pid)
      const gone = once(first.process, 'exit')
      first.process.kill('SIGTERM')
      assert.deepEqual(await inTime(gone, 'the stopped server is gone'), [0, null], first.errors())
      assert.deepEqual(
        await Promise.all(processes.map(isAlive)),
        processes.map(() => false),
      )
      const second = await automationServer(t, { folder })
      for (const id of ids) {
        const { status, message } = await second.run(id)
        assert.deepEqual(
          [status, message?.startsWith('the run was stopped: RunInterrupted')],
          ['exception', true],
          message ?? '',
        )
      }
      assert.equal((await second.ended(waiting)).status, 'succeeded')
      assert.equal(first.errors(), '')
    })
})
