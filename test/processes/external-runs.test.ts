import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type AutomationServer, automationServer } from './automation-server.ts'
import { temporaryFolder } from '../support/folder.ts'

const FUNCTION = fileURLToPath(new URL('./functions/misbehaving.ts', import.meta.url))
const TOKEN = 'of-a-person-4713'

interface Ran {
  readonly code: number | null
  readonly output: string
}

interface Own extends Ran {
  readonly server: AutomationServer
  readonly automationId: string
}

async function newAutomation(server: AutomationServer, inputs: object): Promise<string> {
  const wanted = { name: 'Mine', functionId: 'there', modelId: await server.modelId(), inputs, trigger: 'manual' }
  return (await server.ask<{ readonly id: string }>('POST', 'automations', wanted)).id
}

/** The function of a person, who has it report to the server. */
async function reported(t: TestContext, server: AutomationServer, argv: readonly string[]): Promise<Ran> {
  const options = ['run', '--report', '--url', server.url, '--project', 'demo', ...argv]
  const child = spawn(process.execPath, [...process.execArgv, FUNCTION, ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, STOWAGE_TOKEN: TOKEN, OTHER_API_KEY: 'swordfish-of-the-environment' },
  })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

async function ownRun(t: TestContext, inputs: object): Promise<Own> {
  const server = await automationServer(t, { folder: temporaryFolder(t) })
  const automationId = await newAutomation(server, inputs)
  return { server, automationId, ...(await reported(t, server, ['--automation', automationId])) }
}

suite('a person runs a function that reports to the server', { concurrency: 2 }, () => {
  for (const [what, status, message, expected] of [
    ['succeed', 'succeeded', 'all is well', 0],
    ['fail', 'failed', 'a rule is broken', 3],
    ['throw', 'exception', 'thrown by the function', 1],
  ] as const) {
    test(`${what}: exit code ${expected}, and a run of the automation with annotations and a status`, async (t) => {
      const { server, automationId, code, output } = await ownRun(t, { what })
      assert.equal(code, expected, output)
      const [run] = await server.runs()
      assert.deepEqual([run.automationId, run.status, run.message], [automationId, status, message])
      assert.deepEqual(run.triggeredBy, { kind: 'external', runId: null })
      assert.notEqual(run.endedAt, null)
      assert.deepEqual(
        (await server.annotations(run.id)).map(({ category }) => category),
        ['before'],
      )
      assert.match(output, new RegExp(`reports to ${server.url} as run ${run.id} of project demo`))
    })
  }

  test('its log, files and versions arrive, without secrets of the person', async (t) => {
    const server = await automationServer(t, { folder: temporaryFolder(t) })
    const automationId = await newAutomation(server, { what: 'succeed' })
    const folder = temporaryFolder(t)
    const inputs = join(folder, 'inputs.json')
    await writeFile(inputs, JSON.stringify({ what: 'tell-the-key', key: 'swordfish-of-the-environment' }))
    const { code, output } = await reported(t, server, ['--automation', automationId, '--inputs', inputs])
    assert.equal(code, 3, output)
    const [{ id }] = await server.runs()
    const run = await server.run(id)
    assert.deepEqual([run.artifacts.length, run.createdVersions.length], [1, 1])
    const logs = await server.logs(id)
    assert.ok(logs.some(({ message }) => message.includes('the key is ******')))
    assert.doesNotMatch(JSON.stringify([run, logs, await server.annotations(id)]) + output, /swordfish|of-a-person/)
  })

  test('secret inputs of the automation are not handed out: the person must supply inputs, or no run starts', async (t) => {
    const { server, code, output } = await ownRun(t, { what: 'succeed', key: 'swordfish' })
    assert.equal(code, 2)
    assert.match(output, /the automation has secret inputs \(key\).*--inputs FILE/)
    assert.deepEqual(await server.runs(), [])
  })

  test('a missing or unknown automation is refused', async (t) => {
    const server = await automationServer(t, { folder: temporaryFolder(t) })
    const cases = [
      [[], /--automation ID is missing/],
      [['--automation', '0'.repeat(32)], /there is no automation/],
      [['--automation', '0'.repeat(32), '--local'], /cannot be used with option/],
    ] as const
    for (const [argv, expected] of cases) {
      const { code, output } = await reported(t, server, argv)
      assert.deepEqual([code, expected.test(output)], [2, true], output)
    }
  })
})
