import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { automationRequests, type DemoAutomations, FUNCTION_NAMES, setUpAutomations } from './demo-automation.ts'
import { type DemoModel, type DemoRequest, demoRequests } from './demo-requests.ts'
import { tryAutomations, trySignIn } from './demo-smoke.ts'
import { building, type ModelObject } from './model/building.ts'
import { readOptions } from './options.ts'
import { REPOSITORY } from './repository.ts'
import { build, buildFunctions, exitOnSignals, issueToken, startServer } from './server.ts'
import type { RunningServer } from './server-process.ts'
import { type Target, uploadModel } from './upload.ts'

/*
 * `npm start`: the service on its embedded default, with a building to look at, three functions that run on it, and a line to paste for each endpoint.
 * Runs until Ctrl-C. `--data` and `--port` choose another folder and port. With `--smoke` it works in a folder of its own, tries every line that it prints and
 * every function, and ends.
 */

const PROJECT = 'demo'
const MODEL_OBJECTS = 3_000
const LINE_TIMEOUT_MS = 60_000
/** A signal that ends npm ends its shell, which does not pass it on. */
const PARENT_CHECK_MS = 500
const run = promisify(execFile)

const chosen = readOptions('npm start -- [--port N] [--data FOLDER] [--smoke]', {
  smoke: { type: 'boolean', default: false },
  port: { type: 'string', default: '8642' },
  data: { type: 'string', default: join(REPOSITORY, '.stowage') },
})

try {
  await (chosen.smoke ? smoke() : demo(chosen.data, ['--port', chosen.port], staysUp))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

async function smoke(): Promise<void> {
  exitOnSignals()
  const folder = await mkdtemp(join(tmpdir(), 'stowage-demo-'))
  try {
    await demo(folder, ['--port', '0'], tryAll)
    console.log('\nOnce more on the same folder: nothing is uploaded or set up twice.\n')
    await demo(folder, ['--port', '0'], async (server, shown) => {
      if (shown.automations.created > 0) throw new Error(`${shown.automations.created} things were set up again`)
      await tryAll(server, shown)
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

interface Demo {
  readonly target: Target
  readonly objects: readonly ModelObject[]
  readonly automations: DemoAutomations
  readonly requests: readonly DemoRequest[]
}

async function demo(
  folder: string,
  options: readonly string[],
  afterPrinting: (server: RunningServer, demo: Demo) => Promise<void>,
): Promise<void> {
  console.log('Building ...')
  build()
  const functions = buildFunctions(FUNCTION_NAMES).flatMap((file) => ['--function', file])
  // The packages that they would have in their own node_modules.
  functions.push('--function-files', join(REPOSITORY, 'dist'))
  const token = await issueToken(folder, PROJECT)
  const server = await startServer(folder, [...options, ...functions], token)
  try {
    const target = { url: server.url, token, projectId: PROJECT }
    const objects = [...building({ objects: MODEL_OBJECTS })].flat()
    const model = await fill(target, objects)
    const automations = await setUpAutomations(target, model.rootId)
    const requests = [...demoRequests(model), ...automationRequests(target, automations)]
    printLines(server, target, requests)
    await afterPrinting(server, { target, objects, automations, requests })
  } finally {
    await server.stop()
  }
}

/** Uploads the model, or finds that it is already there. */
async function fill(target: Target, model: readonly ModelObject[]): Promise<DemoModel> {
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

function printLines({ pagesUrl, signInUrl }: RunningServer, target: Target, requests: readonly DemoRequest[]): void {
  console.log(`\nStowage answers on ${target.url}. Lines to try in another terminal:\n`)
  console.log(`export STOWAGE=${target.url}\nexport TOKEN=${target.token}`)
  for (const { endpoint, explanation, command } of requests) console.log(`\n# ${endpoint}: ${explanation}\n${command}`)
  console.log(
    `\nPress Ctrl-C to stop. The link below works once, within five minutes; later on, sign in with $TOKEN at`,
  )
  console.log(`${pagesUrl}\n\nOpen this link: ${signInUrl}`)
}

async function staysUp(server: RunningServer): Promise<void> {
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

async function tryAll(server: RunningServer, { target, objects, automations, requests }: Demo): Promise<void> {
  const env = { ...process.env, STOWAGE: target.url, TOKEN: target.token }
  for (const { endpoint, command, prints } of requests) {
    const { stdout } = await run('bash', ['-c', `set -e; ${command}`], { env, timeout: LINE_TIMEOUT_MS })
    if (!prints.test(stdout))
      throw new Error(
        `${endpoint} answered what was not expected. The line was\n${command}\nand it printed\n${stdout.slice(0, 1_000)}`,
      )
  }
  console.log('\nEvery line was tried and answered as it should.')
  await trySignIn(server)
  await tryAutomations(target, automations, objects)
}
