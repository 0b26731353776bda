import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { type DemoModel, demoRequests } from './demo-requests.ts'
import { building } from './model/building.ts'
import { build, exitOnSignals, issueToken, REPOSITORY, type RunningServer, startServer } from './server.ts'
import { type Target, uploadModel } from './upload.ts'

/*
 * `npm start`: the service on its embedded default, with a building to look at and a line to paste for each endpoint. Runs until Ctrl-C.
 * With `--smoke` it works in a folder of its own, tries every line that it prints, and ends.
 */

const PROJECT = 'demo'
const MODEL_OBJECTS = 3_000
const LINE_TIMEOUT_MS = 20_000
/** Whoever ends npm ends its shell, which does not pass the signal on. */
const PARENT_CHECK_MS = 500
const run = promisify(execFile)

const { values: chosen } = parseArgs({ options: { smoke: { type: 'boolean', default: false }, port: { type: 'string', default: '8642' } } })

try {
  await (chosen.smoke ? smoke() : demo(join(REPOSITORY, '.stowage'), ['--port', chosen.port], staysUp))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

async function smoke(): Promise<void> {
  exitOnSignals()
  const folder = await mkdtemp(join(tmpdir(), 'stowage-demo-'))
  try {
    await demo(folder, ['--port', '0'], tryLines)
    console.log('\nOnce more on the same folder: nothing is uploaded twice.\n')
    await demo(folder, ['--port', '0'], tryLines)
  } finally {
    await rm(folder, { recursive: true })
  }
}

type AfterPrinting = (server: RunningServer, target: Target, model: DemoModel) => Promise<void>

async function demo(folder: string, options: readonly string[], afterPrinting: AfterPrinting): Promise<void> {
  console.log('Building ...')
  build()
  const server = await startServer(folder, options)
  try {
    const target = { url: server.url, token: await issueToken(folder, PROJECT), projectId: PROJECT }
    const model = await fill(target)
    printLines(target, model)
    await afterPrinting(server, target, model)
  } finally {
    await server.stop()
  }
}

/** Uploads the model, or finds that it is there. */
async function fill(target: Target): Promise<DemoModel> {
  const model = [...building({ objects: MODEL_OBJECTS })].flat()
  const report = await uploadModel(target, [model], { skipHeld: true })
  const megabytes = (report.jsonBytes / 1_048_576).toFixed(1)
  console.log(
    report.sentObjects === 0
      ? `Project "${PROJECT}" holds its model of ${report.objects} objects already.`
      : `Uploaded a model of ${report.sentObjects} objects, ${megabytes} MB of JSON, to project "${PROJECT}".`,
  )
  const child = model.findLast(({ json }) => json.includes('"Objects.Data.DataObject"')) ?? model[0]
  return { projectId: PROJECT, rootId: report.rootId, childId: child.id, objects: report.objects }
}

function printLines(target: Target, model: DemoModel): void {
  console.log(`\nStowage answers on ${target.url}. In another terminal:\n`)
  console.log(`export STOWAGE=${target.url}\nexport TOKEN=${target.token}`)
  for (const { endpoint, explanation, command } of demoRequests(model)) console.log(`\n# ${endpoint}: ${explanation}\n${command}`)
}

async function staysUp(server: RunningServer): Promise<void> {
  console.log('\nPress Ctrl-C to stop.')
  let stopping = false
  const stop = (): void => {
    stopping = true
    void server.stop()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  const parent = process.ppid
  const watch = setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_MS)
  const code = await server.ended
  clearInterval(watch)
  if (!stopping) throw new Error(`the server ended with code ${code}`)
}

async function tryLines(_server: RunningServer, target: Target, model: DemoModel): Promise<void> {
  const env = { ...process.env, STOWAGE: target.url, TOKEN: target.token }
  for (const { endpoint, command, prints } of demoRequests(model)) {
    const { stdout } = await run('bash', ['-c', `set -e; ${command}`], { env, timeout: LINE_TIMEOUT_MS })
    if (!prints.test(stdout)) throw new Error(`${endpoint} answered what was not expected. The line was\n${command}\nand it printed\n${stdout.slice(0, 1_000)}`)
  }
  console.log('\nEvery line was tried and answered as it should.')
}
