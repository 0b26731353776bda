import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { CommandRunner } from '../../src/automation-server/runner/executors/isolation/command-runner.ts'
import type { CommandFunction } from '../../src/automation-server/index.ts'
import { eventually } from '../support/patience.ts'
import { type AutomationServer, automationServer } from './automation-server.ts'
import { temporaryFolder } from '../support/folder.ts'
import type { HostSettings } from './automation-host.ts'

/* What holds for functions that do what they can to see more and to live longer than they should, with bubblewrap and without. */

/** `process` says that this machine cannot make namespaces, so that what needs them is not tried. */
const EXPECTED = process.env.STOWAGE_TEST_ISOLATION ?? 'bubblewrap'
const KINDS = EXPECTED === 'bubblewrap' ? (['bubblewrap', 'process'] as const) : (['process'] as const)
type Kind = 'bubblewrap' | 'process'

/** Its run's id, so that a test finds its processes, and what it is told. */
const BEGIN = `
  const { readFileSync, readdirSync, writeFileSync } = require('node:fs')
  const { spawn } = require('node:child_process')
  const { automationRunData: run } = JSON.parse(readFileSync(process.argv.at(-1), 'utf8'))
  const id = run.functionRunId
`
/** Never gives its event loop back. */
const SPINNING = `${BEGIN}
  process.title = id
  process.stdout.write('begun\\n', () => { for (;;); })
`
/** Leaves its group, its session and its parent, and goes on with what it is told. */
const leaving = (rest: string): string => `${BEGIN}
  spawn('setsid', ['--fork', process.execPath, '-e', process.env.CODE, id], { stdio: 'ignore' })
    .on('exit', () => { process.stdout.write('begun\\n'); ${rest} })
`
const STAY = 'setInterval(() => undefined, 1000)'
/** Says what it can see and reach. */
const LOOKING = `${BEGIN}
  const tried = (work) => { try { return String(work()) } catch (error) { return error.code } }
  const pids = readdirSync('/proc').filter((name) => Number(name) > 0)
  const seen = pids.map((pid) => tried(() => readFileSync('/proc/' + pid + '/environ', 'latin1'))).join()
  const asked = (url) => fetch(url).then((answer) => 'answered ' + answer.status, ({ cause }) => cause.code)
  ;(async () => console.log(JSON.stringify({
    own: tried(() => readFileSync(process.env.OWN, 'utf8')),
    wrote: tried(() => writeFileSync(process.env.OWN, 'changed')),
    data: tried(() => readdirSync(process.env.DATA).includes('records')),
    serversSecret: seen.includes('THE_SERVERS_SECRET=hush'),
    server: await asked(run.speckleServerUrl + '/api/openapi.json'),
    other: await asked(process.env.OTHER),
  })))()
`

function program(id: string, code: string, more: Partial<CommandFunction> = {}): CommandFunction {
  const inputs = { type: 'object', properties: {} }
  return { id, name: id, release: '1', inputs, command: [process.execPath, '-e', code, '--'], ...more }
}

async function started(
  t: TestContext,
  kind: Kind,
  settings: Partial<HostSettings> & { readonly functions: readonly CommandFunction[] },
): Promise<{ readonly server: AutomationServer; readonly folder: string }> {
  const folder = settings.folder ?? temporaryFolder(t)
  const isolation = kind === 'bubblewrap' ? 'required' : 'off'
  return {
    folder,
    server: await automationServer(t, { concurrency: 3, sweepIntervalMs: 200, ...settings, folder, isolation }),
  }
}

/** Of all whose command line holds that text. */
async function processesWith(text: string): Promise<readonly number[]> {
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const command = await readFile(`/proc/${name}/cmdline`, 'latin1').catch(() => '')
    if (command.includes(text)) found.push(Number(name))
  }
  return found
}

async function begun(server: AutomationServer, functionId: string): Promise<string> {
  const id = await server.start(functionId)
  await eventually(async () => (await server.logs(id)).length > 0, 'the function has begun')
  await eventually(async () => (await processesWith(id)).length > 0, 'its process is seen')
  return id
}

const noneOf = (id: string) => async (): Promise<boolean> => (await processesWith(id)).length === 0

async function killed({ process }: AutomationServer): Promise<void> {
  const gone = once(process, 'exit')
  process.kill('SIGKILL')
  await gone
}

test('this machine isolates functions as expected', async () => {
  const view = await new CommandRunner().view()
  assert.equal(view.kind, EXPECTED, view.reason)
})

for (const kind of KINDS) {
  suite(`functions isolated by ${kind}`, { concurrency: 2 }, () => {
    test('a function that blocks its event loop dies with its killed server', async (t) => {
      const { server } = await started(t, kind, { functions: [program('spin', SPINNING)] })
      const id = await begun(server, 'spin')
      await killed(server)
      await eventually(noneOf(id), 'nothing of it is left, though no server has come')
    })

    test('a process outside its session dies with its server, or when the next server starts', async (t) => {
      const functions = [program('leave', leaving(STAY), { env: { CODE: STAY } })]
      const { server, folder } = await started(t, kind, { functions })
      const id = await begun(server, 'leave')
      await killed(server)
      if (kind === 'bubblewrap') return eventually(noneOf(id), 'nothing of it is left')
      assert.ok((await processesWith(id)).length > 0, 'a control: it does outlive the server')
      await started(t, kind, { functions, folder })
      await eventually(noneOf(id), 'nothing of it is left')
      assert.deepEqual(await readdir(join(folder, 'processes')), [])
    })

    test('a process outside its session dies at the time limit', async (t) => {
      const functions = [program('leave', leaving(STAY), { env: { CODE: STAY }, killAfterMs: 200 })]
      const { server } = await started(t, kind, { functions, runMsMax: 3_000 })
      const id = await begun(server, 'leave')
      assert.equal((await server.ended(id)).status, 'timeout')
      await eventually(noneOf(id), 'nothing of it is left')
    })

    test('a process outside its session dies when its function ends', async (t) => {
      const functions = [program('leave', leaving(''), { env: { CODE: STAY } })]
      const { server } = await started(t, kind, { functions })
      const id = await server.start('leave')
      assert.equal((await server.ended(id)).status, 'exception')
      await eventually(noneOf(id), 'nothing of it is left')
    })

    test('memory of a process outside its session counts', async (t) => {
      const hoard = 'globalThis.kept = Buffer.alloc(300e6, 1); setInterval(() => undefined, 1000)'
      const functions = [program('leave', leaving(STAY), { env: { CODE: hoard }, memoryBytesMax: 256 * 1_048_576 })]
      const { server } = await started(t, kind, { functions })
      const id = await server.start('leave')
      const run = await server.ended(id)
      assert.match(run.message ?? '', /since it took \d+ bytes of memory and the limit is 268435456/)
      await eventually(noneOf(id), 'nothing of it is left')
    })

    test('a function sees and reaches only what it may', async (t) => {
      const own = await mkdtemp(join(tmpdir(), 'stowage-own-'))
      const other = createServer((_req, res) => res.end('other')).listen(0, '127.0.0.1')
      await once(other, 'listening')
      t.after(async () => {
        other.close()
        await rm(own, { recursive: true })
      })
      await writeFile(join(own, 'rules.json'), 'rules')
      // Inside of what the function may see.
      const folder = join(own, 'data')
      const env = {
        OWN: join(own, 'rules.json'),
        DATA: folder,
        OTHER: `http://127.0.0.1:${(other.address() as AddressInfo).port}/`,
      }
      process.env.THE_SERVERS_SECRET = 'hush'
      t.after(() => delete process.env.THE_SERVERS_SECRET)
      const functions = [
        program('look', LOOKING, { cwd: own, env }),
        program('look-far', LOOKING, { cwd: own, env, hasNetwork: true }),
      ]
      const { server } = await started(t, kind, { functions, folder })
      const seen = async (functionId: string): Promise<unknown> => {
        const id = await server.start(functionId)
        await server.ended(id)
        return JSON.parse((await server.logs(id)).find(({ message }) => message.startsWith('{'))?.message ?? '{}')
      }
      const isolated = { own: 'rules', wrote: 'EROFS', data: 'false', serversSecret: false, server: 'answered 200' }
      const plain = { own: 'rules', wrote: 'undefined', data: 'true', serversSecret: true, server: 'answered 200' }
      if (kind === 'bubblewrap') {
        assert.deepEqual(await seen('look'), { ...isolated, other: 'ECONNREFUSED' })
        assert.deepEqual(await seen('look-far'), { ...isolated, other: 'answered 200' })
      } else {
        // What the documents say of it: nothing is kept from a function but the environment that it inherits.
        assert.deepEqual(await seen('look'), { ...plain, other: 'answered 200' })
      }
    })
  })
}

test('a server refuses to open if required isolation is unavailable', async (t) => {
  const path = process.env.PATH
  t.after(() => {
    process.env.PATH = path
  })
  process.env.PATH = '/nowhere'
  await assert.rejects(
    new CommandRunner({ isolation: 'required', processFolder: join(tmpdir(), 'no-such-folder') }).open(),
    /functions are to be isolated, and this machine cannot do that: bubblewrap is not installed; install bubblewrap/,
  )
})
