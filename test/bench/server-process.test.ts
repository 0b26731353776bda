import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { startBackendHost } from '../../bench/macro/backend-host.ts'
import { serverOf } from '../../bench/server-process.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PATIENCE_MS } from '../support/patience.ts'

const LINE = '{"url":"http://127.0.0.1:1","pid":7}'
const RUNS_ON = 'setInterval(() => undefined, 1_000)'
const IGNORES_SIGTERM = 'process.on("SIGTERM", () => undefined)'

function program(t: TestContext, script: string): ChildProcess {
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.after(() => child.kill('SIGKILL'))
  return child
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

test('a server starts with its line, in one piece or several, and may print more later', async (t) => {
  const [first, rest] = [LINE.slice(0, 9), `${LINE.slice(9)}\n`].map((part) => JSON.stringify(part))
  const more = `setTimeout(() => process.stdout.write(${rest} + 'more\\n'.repeat(100_000)), 20)`
  const child = program(t, `process.stdout.write(${first}); ${more}; ${RUNS_ON}`)
  const server = await serverOf(child, { startTimeoutMs: PATIENCE_MS })
  assert.deepEqual([server.url, server.pid], ['http://127.0.0.1:1', 7])
  await server.stop()
  assert.ok(hasEnded(child))
})

const failures: readonly (readonly [name: string, script: string, message: RegExp])[] = [
  [
    'prints a line that is no JSON',
    `console.log('connected'); ${RUNS_ON}`,
    /JSON: it printed "connected" and was stopped$/,
  ],
  ['prints other JSON', `console.log('{"port":1}'); ${RUNS_ON}`, /printed "\{\\"port\\":1\}" and was stopped$/],
  [
    'prints a line before its own',
    `console.log('connected'); console.log(${JSON.stringify(LINE)}); ${RUNS_ON}`,
    /printed "connected\\n\{.*" and was stopped$/,
  ],
  ['fails', `console.log('no disk'); process.exitCode = 3`, /printed "no disk" and ended with code 3$/],
  ['ends without a word', 'process.exitCode = 4', /JSON: it printed nothing and ended with code 4$/],
  ['is killed', `process.kill(process.pid, 'SIGKILL')`, /printed nothing and ended with SIGKILL$/],
  ['ignores SIGTERM', `${IGNORES_SIGTERM}; console.log('no'); ${RUNS_ON}`, /printed "no" and was stopped$/],
  ['prints very much', `console.log('x'.repeat(5_000_000)); ${RUNS_ON}`, /printed "x{400} \.\.\." and was stopped$/],
]
for (const [name, script, message] of failures)
  test(`a server that ${name} is an error that shows its output, and is gone`, async (t) => {
    const child = program(t, script)
    const endTimeoutMs = script.includes(RUNS_ON) ? 50 : PATIENCE_MS
    await assert.rejects(serverOf(child, { startTimeoutMs: PATIENCE_MS, endTimeoutMs }), message)
    assert.ok(hasEnded(child))
  })

test('a server that does not listen in time is stopped', async (t) => {
  for (const [script, printed] of [
    [RUNS_ON, 'nothing'],
    [`process.stdout.write('loading'); ${RUNS_ON}`, '"loading"'],
  ]) {
    const child = program(t, script)
    if (printed !== 'nothing') await once(child.stdout ?? child, 'readable')
    await assert.rejects(serverOf(child, { startTimeoutMs: 50, endTimeoutMs: 50 }), {
      message: `the server was not ready within 50 ms: it printed ${printed} and was stopped`,
    })
    assert.ok(hasEnded(child))
  }
})

test('a program that is missing is an error', async () => {
  const child = spawn('/no/such/program', { stdio: ['ignore', 'pipe', 'ignore'] })
  await assert.rejects(serverOf(child), /ENOENT/)
})

test('the benchmark refuses a backend module that prints', async (t) => {
  const folder = temporaryFolder(t)
  const module = join(folder, 'backend.mjs')
  writeFileSync(module, `console.log('connected to the database')\nexport const backend = () => process.exit(5)\n`)
  await assert.rejects(
    startBackendHost(folder, module),
    /it printed "connected to the database" and ended with code 5$/,
  )
})
