import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type RunServer, runServer, TOKEN } from '../automation/run-server.ts'
import { automationServer } from './automation-server.ts'
import { eventually } from '../support/patience.ts'
import { temporaryFolder } from '../support/folder.ts'

const FUNCTION = fileURLToPath(new URL('./functions/misbehaving.ts', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly output: string
}

/** The function's file as a process. */
function started(
  t: TestContext,
  ...argv: readonly string[]
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  const child = spawn(process.execPath, [...process.execArgv, FUNCTION, ...argv], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return { child, ended: new Promise((resolve) => child.on('close', (code) => resolve({ code, output }))) }
}

async function ran(t: TestContext, what: string): Promise<Ended & { readonly server: RunServer }> {
  const server = await runServer(t)
  return { ...(await started(t, 'run', await server.written({ what })).ended), server }
}

/** What the server holds in the end. */
function held({ run }: RunServer): readonly unknown[] {
  const { status, message, annotations } = run.backend.reported
  return [status, message, annotations.length]
}

suite('a function as a process', { concurrency: 2 }, () => {
  for (const [what, status, message, code] of [
    ['succeed', 'succeeded', 'all is well', 0],
    ['fail', 'failed', 'a rule is broken', 0],
    ['throw', 'exception', 'thrown by the function', 1],
    ['timer', 'exception', 'thrown in a timer', 1],
    ['rejection', 'exception', 'rejected, and nobody listens', 1],
    ['forever', 'exception', 'the function waits forever: its process has nothing left to do', 1],
    ['leave-open', 'succeeded', 'a timer is still there', 0],
  ] as const) {
    test(`${what}: ${status}, exit code ${code}`, async (t) => {
      const { server, ...ended } = await ran(t, what)
      assert.deepEqual([ended.code, ...held(server)], [code, status, message, 1], ended.output)
    })
  }

  for (const [what, signal, message] of [
    ['obey', 'SIGTERM', 'the run was stopped: RunInterrupted: the process got SIGTERM'],
    [
      'ignore',
      'SIGINT',
      'the run was stopped: RunInterrupted: the process got SIGINT; the function did not return within 300 ms',
    ],
  ] as const) {
    test(`${signal} while the function would ${what}: an exception that says so`, async (t) => {
      const server = await runServer(t)
      const { child, ended } = started(t, await server.written({ what }))
      await eventually(() => server.run.backend.reported.progress !== undefined, 'the function has begun')
      child.kill(signal)
      const { code, output } = await ended
      assert.deepEqual([code, ...held(server)], [1, 'exception', message, 1], output)
    })
  }

  test('a run that is canceled on the server ends and stays canceled', async (t) => {
    const server = await runServer(t)
    const { ended } = started(t, await server.written({ what: 'obey' }))
    await eventually(() => server.run.backend.reported.progress !== undefined, 'the function has begun')
    await server.run.cancel()
    const { code, output } = await ended
    assert.deepEqual([code, server.run.backend.reported.status], [4, 'canceled'], output)
    assert.match(output, /canceled: the run was canceled/)
  })

  test('a function that loses its server gives up in time, with an exit code that says so', async (t) => {
    const server = await runServer(t)
    server.fault = (req) => {
      req.destroy()
      return true
    }
    const { code, output } = await started(t, await server.written({ what: 'succeed' })).ended
    assert.equal(code, 1)
    assert.match(output, /the final report \(succeeded\) could not be delivered/)
    assert.doesNotMatch(output, /47110815/)
  })

  test('a deliberately printed secret stays in the function', async (t) => {
    const server = await runServer(t)
    const { output } = await started(t, 'run', await server.written({ what: 'print', key: 'swordfish-4711' })).ended
    const { message, logs } = server.run.backend.reported
    assert.equal(message, 'no access with ******')
    assert.doesNotMatch(JSON.stringify(logs) + output, /swordfish/)
  })
})

suite('the command of a function', { concurrency: 2 }, () => {
  test('the command writes the schema, under both of its spellings', async (t) => {
    const folder = temporaryFolder(t)
    for (const command of ['generate_schema', 'generate-schema']) {
      const path = join(folder, command)
      assert.equal((await started(t, command, path).ended).code, 0)
      const schema = JSON.parse(await readFile(path, 'utf8')) as { properties: object }
      assert.deepEqual(Object.keys(schema.properties), ['what', 'key'])
    }
  })

  test('the command validates inputs without a run and shows no value', async (t) => {
    const server = await runServer(t)
    assert.equal((await started(t, 'validate').ended).code, 0)
    assert.equal((await started(t, 'validate', await server.written({ what: 'succeed' })).ended).code, 0)
    const { code, output } = await started(t, 'validate', await server.written({ what: 'explode' })).ended
    assert.equal(code, 1)
    assert.match(output, /"what" must be/)
    assert.doesNotMatch(output, /explode/)
    assert.deepEqual(server.asked, [])
  })

  test('an invalid run file gives exit code 2 and shows none of its text', async (t) => {
    const folder = temporaryFolder(t)
    const path = join(folder, 'run.json')
    for (const [text, words] of [
      [`{"speckleToken":"${TOKEN}"`, /the file is not JSON/],
      [`{"speckleToken":"${TOKEN}"}`, /automationRunData must be an object/],
    ] as const) {
      await writeFile(path, text)
      const { code, output } = await started(t, 'run', path).ended
      assert.equal(code, 2)
      assert.match(output, words)
      assert.doesNotMatch(output, /47110815/)
    }
    assert.equal((await started(t, 'run', join(folder, 'nothing')).ended).code, 2)
  })

  test('an imported function file runs nothing', async () => {
    const { misbehaving } = await import('./functions/misbehaving.ts')
    assert.deepEqual([misbehaving.name, misbehaving.graceMs], ['misbehaving', 300])
  })
})

/** A model on a server of ours, and the function run by somebody there with their own token. */
async function ownRun(t: TestContext, inputs: object, ...more: readonly string[]) {
  const server = await automationServer(t, { folder: temporaryFolder(t) })
  const folder = temporaryFolder(t)
  const path = join(folder, 'inputs.json')
  await writeFile(path, JSON.stringify(inputs))
  const modelId = await server.modelId()
  const options = ['--url', server.url, '--project', 'demo', '--model', modelId, '--inputs', path, ...more]
  process.env.STOWAGE_TOKEN = 'of-a-person-4713'
  return { server, modelId, folder, ...(await started(t, 'run', ...options, '--files', join(folder, 'files')).ended) }
}

suite('a person runs a function on their own machine', { concurrency: 2 }, () => {
  test('without parameters the command prints its usage', async (t) => {
    const { code, output } = await started(t).ended
    assert.equal(code, 2)
    assert.match(output, /Usage: .*\[options\] \[command\]/)
    assert.match(output, /generate-schema/)
  })

  for (const [what, status, expected] of [
    ['succeed', 'succeeded: all is well', 0],
    ['fail', 'failed: a rule is broken', 3],
    ['throw', 'exception: thrown by the function', 1],
  ] as const) {
    test(`${what}: exit code ${expected}, a message on the terminal, and no run on the server`, async (t) => {
      const { code, output, server } = await ownRun(t, { what })
      assert.equal(code, expected, output)
      assert.ok(output.includes(status), output)
      assert.match(output, /info: before: said before the end \(an-object\)/)
      assert.deepEqual(await server.runs(), [])
    })
  }

  test('new versions are created, and files are stored beside the function', async (t) => {
    const { code, output, server } = await ownRun(t, { what: 'make-a-version' })
    assert.equal(code, 0, output)
    const [made] = await server.versions()
    assert.equal(made.message, 'by a run')
    assert.ok(output.includes(`version: ${made.id}`))
    const told = await ownRun(t, { what: 'tell-the-key', key: 'swordfish-4711' })
    assert.equal(await readFile(join(told.folder, 'files', '******.csv'), 'utf8'), 'nothing')
    assert.doesNotMatch(told.output, /swordfish|of-a-person/)
  })

  test('a run file whose token belongs to no run gives exit code 4 with a message, and --local works', async (t) => {
    const server = await automationServer(t, { folder: temporaryFolder(t) })
    const folder = temporaryFolder(t)
    const modelId = await server.modelId()
    const [{ id: versionId }] = await server.versions()
    const path = join(folder, 'run.json')
    const id = 'a'.repeat(32)
    const ids = { automationId: id, automationRunId: id, functionRunId: id }
    const triggers = [{ triggerType: 'versionCreation', payload: { modelId, versionId } }]
    const automationRunData = { projectId: 'demo', speckleServerUrl: server.url, ...ids, triggers }
    await writeFile(
      path,
      JSON.stringify({ speckleToken: 'of-a-person-4713', functionInputs: { what: 'succeed' }, automationRunData }),
    )
    const refused = await started(t, 'run', path).ended
    assert.equal(refused.code, 4, refused.output)
    assert.match(refused.output, /canceled: .*add --local/s)
    const own = await started(t, 'run', path, '--local').ended
    assert.deepEqual([own.code, own.output.includes('succeeded: all is well')], [0, true], own.output)
  })

  test('a missing parameter is named', async (t) => {
    const { code, output } = await started(t, 'run', '--url', 'http://127.0.0.1:1').ended
    assert.equal(code, 2)
    assert.match(output, /--project ID is missing|there is no token/)
  })
})
