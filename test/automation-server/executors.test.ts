import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { functionEnvironment } from '../../src/automation-server/runner/executors/isolation/environment.ts'
import { OutputLog } from '../../src/automation-server/runner/executors/output-log.ts'
import { removeStaleFolders, withPrivateFolder } from '../../src/automation-server/runner/executors/private-folder.ts'
import { CommandRunner } from '../../src/automation-server/runner/executors/isolation/command-runner.ts'
import { automation, type AutomationOptions } from '../../src/automation-server/index.ts'
import { defineFunction, defineInputs, integer, secret, text } from '../../src/automation/index.ts'
import type { LogLine } from '../../src/automation/runtime/index.ts'
import type { StorageBackend } from '../../src/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { sharing } from '../store/failures.ts'
import { TimeByHand } from '../store/time.ts'
import { eventually, turns } from '../support/patience.ts'
import { processorMs } from '../support/processor.ts'
import { automated, definition, uploadObjects, waiting, withAutomation } from './support.ts'

/** What a log keeps of these chunks. */
async function logged(
  chunks: readonly string[],
  options: { readonly outputBytesMax?: number; readonly secretTexts?: readonly string[] } = {},
) {
  const lines: LogLine[] = []
  const log = new OutputLog({
    outputBytesMax: 10_000,
    secretTexts: [],
    clock: { now: () => 1 },
    ...options,
    addLogs: async (more) => void lines.push(...more),
  })
  await log.read(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), 'info')
  await log.finish()
  return { lines: lines.map(({ message }) => message), lastLines: log.lastLines }
}

test('output becomes lines without colors, empty lines and secrets, regardless of its chunks', async () => {
  const { lines, lastLines } = await logged(['one\r\ntw', 'o\n\n\u001B[31mred\u001B[0m sword', 'fish\nthe last'], {
    secretTexts: ['swordfish', 'of two\nlines'],
  })
  assert.deepEqual(lines, ['one', 'two', 'red ******', 'the last'])
  assert.equal(lastLines, 'one\ntwo\nred ******\nthe last')
  assert.deepEqual((await logged(['of two\n', 'lines\n'], { secretTexts: ['of two\nlines'] })).lines, [
    '******',
    '******',
  ])
})

test('the message keeps the error and the first place of an uncaught stack, and the log keeps all of it', async () => {
  const frames = Array.from({ length: 40 }, (_, at) => `    at deep (checker.js:${at})`)
  const { lines, lastLines } = await logged([
    ['checker.js:1', 'RangeError: too deep', ...frames, 'Node.js v24', ''].join('\n'),
  ])
  assert.equal(lines.length, 43)
  assert.equal(lastLines, 'checker.js:1\nRangeError: too deep\n    at deep (checker.js:0)\nNode.js v24')
})

test('a flood of output keeps its beginning and its end, and a cut reveals no part of a secret', async () => {
  const secretText = 'swordfish-swordfish-swordfish'
  const flood = Array.from({ length: 60 }, (_, at) => `${secretText} ${at} ${'x'.repeat(1_000)}\n`)
  const { lines, lastLines } = await logged([...flood, 'the end\n'], {
    outputBytesMax: 5_000,
    secretTexts: [secretText],
  })
  assert.ok(lines.some((line) => line.includes('prints more than 5000 bytes')))
  assert.ok(lines.join('\n').length < 8_000)
  assert.match(lastLines, /the end$/)
  assert.doesNotMatch(lines.join('\n') + lastLines, /sword|fish/)
  const long = await logged([`${'y'.repeat(8_000 - 10)}${secretText}${'z'.repeat(50_000)}`], {
    outputBytesMax: 1_000_000,
    secretTexts: [secretText],
  })
  assert.doesNotMatch(long.lines.join('\n'), /sword|fish/)
  assert.ok(long.lines[0].length <= 8_000)
  const spellingLengthMax = secretText.length * 9
  const tail =
    secretText.slice(-8) +
    secretText.repeat(Math.floor(8_000 / secretText.length)) +
    'z'.repeat(2 * (8_000 + spellingLengthMax))
  const oneLine = await logged(
    ['x'.repeat(10), secretText.slice(0, -8), tail.slice(0, 2 * (8_000 + spellingLengthMax))],
    { outputBytesMax: 1, secretTexts: [secretText] },
  )
  assert.doesNotMatch(oneLine.lines.join('\n') + oneLine.lastLines, /sword|fish/)
})

test('a process that prints without end is slowed down', async () => {
  const log = new OutputLog({ outputBytesMax: 1, secretTexts: [], clock: Date, addLogs: async () => undefined })
  const stream = new PassThrough({ highWaterMark: 65_536 })
  const reading = log.read(stream, 'info')
  let written = 0
  const until = performance.now() + 100
  while (performance.now() < until) {
    if (stream.write(Buffer.alloc(65_536, 'x\n'))) written++
    await turns(1)
  }
  stream.end()
  await reading
  assert.ok(written < 60, `${written} pieces of 64 KB in 100 ms`)
})

test('private folders of dead servers are removed, and those of live servers stay', async (t) => {
  const before = process.env.TMPDIR
  const root = await mkdtemp(join(tmpdir(), 'stowage-executors-'))
  process.env.TMPDIR = root
  t.after(async () => {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
    await rm(root, { recursive: true })
  })
  const old = new Date(Date.now() - 3_600_000)
  const made = async (name: string, isOld: boolean): Promise<void> => {
    await mkdir(join(root, name))
    await writeFile(join(root, name, 'run.json'), 'token')
    if (isOld) await utimes(join(root, name), old, old)
  }
  await made('stowage-run-999999999-dead', true)
  await made('stowage-run-999999999-young', false)
  // In a container every server has the same number.
  await made(`stowage-run-${process.pid}-before`, true)
  await made('stowage-run-none', true)
  await made('other', true)
  await withPrivateFolder(async () => {
    await removeStaleFolders()
    const left = (await readdir(root)).filter((name) => !name.startsWith(`stowage-run-${process.pid}-`))
    assert.deepEqual(left.sort(), ['other', 'stowage-run-999999999-young', 'stowage-run-none'])
    assert.equal((await readdir(root)).length, 4)
  })
  assert.equal((await readdir(root)).length, 3)
})

test('the environment of a process contains no possible secret of the server', (t) => {
  process.env.DATABASE_PASSWORD = 'hush'
  t.after(() => delete process.env.DATABASE_PASSWORD)
  const environment = functionEnvironment({
    folder: '/folder',
    memoryBytesMax: 104_857_600,
    env: { MODE: 'a', NODE_OPTIONS: '--no-warnings' },
  })
  assert.doesNotMatch(JSON.stringify(environment), /hush/)
  assert.deepEqual(
    [environment.HOME, environment.MODE, environment.NODE_OPTIONS],
    ['/folder', 'a', '--max-old-space-size=75 --no-warnings'],
  )
})

test('a program that cannot start is an error that names it', async () => {
  for (const isolation of ['auto', 'off'] as const) {
    const runner = new CommandRunner({ isolation })
    const start = (command: readonly string[], cwd: string): Promise<unknown> =>
      withPrivateFolder((folder) =>
        runner.start({
          command,
          cwd,
          folder,
          env: {},
          memoryBytesMax: 1e9,
          readablePaths: [],
          hasNetwork: false,
          prepare: async () => [],
        }),
      )
    await assert.rejects(start(['no-such-program'], '.'), /the program "no-such-program" could not be started: ENOENT/)
    await assert.rejects(start([process.execPath], 'no/such/folder'), /could not be started: ENOENT/)
    await assert.rejects(start(['/etc/passwd'], '.'), /"\/etc\/passwd" could not be started: EACCES/)
  }
})

test('invalid functions are refused at registration', () => {
  const command = {
    id: 'c',
    name: 'c',
    release: '1',
    inputs: { type: 'object', properties: {} },
    command: ['node', 'c.js'],
  }
  const made = (options: AutomationOptions): unknown => automation(options)
  assert.throws(() => made({ functions: [command] }), /pass serverUrl, the address of the service/)
  for (const wrong of [{ command: [] }, { command: [''] }, { command: ['a\0b'] }])
    assert.throws(() => made({ serverUrl: 'http://x', functions: [{ ...command, ...wrong }] }), TypeError)
  for (const wrong of [{ killAfterMs: 0 }, { killAfterMs: 2 ** 31 }, { memoryBytesMax: 1.5 }, { outputBytesMax: -1 }])
    assert.throws(() => made({ serverUrl: 'http://x', functions: [{ ...command, ...wrong }] }), RangeError)
  // A timer of Node that is set to more fires at once.
  for (const wrong of [{ leaseMs: 2 ** 31 }, { runMsMax: 2 ** 31 }, { sweepIntervalMs: 2 ** 31 }, { leaseMs: 0 }])
    assert.throws(() => made(wrong), RangeError)
})

class Inputs extends defineInputs({
  code: text({ pattern: /^(a|a)*$/, default: 'a' }),
  count: integer({ default: 1 }),
  key: secret({ required: false }),
}) {}

/** Runs an in-process function once on a service of its own. */
async function ranHere(
  t: TestContext,
  body: Parameters<typeof defineFunction<typeof Inputs>>[0],
  { graceMs = 1_000, ...options }: { readonly graceMs?: number; readonly backend?: StorageBackend } = {},
) {
  const fixture = automated(t, {
    ...options,
    functions: [{ id: 'here', release: '1', function: defineFunction(body, Inputs, { graceMs }) }],
  })
  const {
    project,
    automation: { id: automationId },
    modelId,
  } = await withAutomation(fixture, { functionId: 'here', trigger: 'version' })
  return { ...fixture, project, modelId, automationId }
}

test('a version that a function created does not start its automation again, and two automations cannot loop', async (t) => {
  const { project, extension, service, modelId, automationId } = await ranHere(t, async (context) => {
    await context.createNewVersionInProject('p', { name: `by ${context.automationRunData.automationId}` }, 'made')
    context.markRunSuccess('made')
  })
  await uploadObjects(service, 'p', [{ id: 'root' }])
  await project.versions.create(modelId, { rootObjectId: 'root', message: 'by a person' })
  await extension.idle()
  assert.deepEqual(
    (await project.runs.list()).items.map((run) => [run.automationId, run.status]),
    [[automationId, 'succeeded']],
  )
  await project.automations.create({ name: 'b', functionId: 'here', modelId, inputs: {}, trigger: 'version' })
  await project.versions.create(modelId, { rootObjectId: 'root', message: 'by a person' })
  await extension.idle()
  assert.equal((await project.runs.list()).items.length, 1 + 4)
})

test('a catastrophic pattern does not block the server', async (t) => {
  const { ask, project, modelId, automationId, extension } = await ranHere(t, (context) =>
    context.markRunSuccess('taken'),
  )
  const beganMs = processorMs()
  const { status, json } = await ask('POST', 'p/automations', {
    name: 'c',
    functionId: 'here',
    modelId,
    inputs: { code: `${'a'.repeat(50)}!` },
    trigger: 'manual',
  })
  assert.deepEqual([status, json.code], [400, 'invalid_inputs'])
  assert.ok(processorMs() - beganMs < 10_000)
  await project.automations.change(automationId, { inputs: { count: 4711, code: 'a'.repeat(50) } })
  const { id } = await project.runs.start(automationId)
  await extension.idle()
  assert.equal((await project.runs.get(id)).status, 'succeeded')
})

test('inputs that a newer function refuses make the run an exception, which names fields and shows no value', async (t) => {
  const backend = memoryBackend()
  const { project, automationId, service } = await ranHere(t, (context) => context.markRunSuccess('taken'), {
    backend: sharing(backend),
  })
  await project.automations.change(automationId, { inputs: { count: 4711 } })
  const { id } = await project.runs.start(automationId)
  await project.runs.cancel(id)
  await service.close()
  class Stricter extends defineInputs({ count: integer({ lt: 10 }) }) {}
  const newer = automated(t, {
    backend: sharing(backend),
    functions: [
      { id: 'here', release: '2', function: defineFunction((context) => context.markRunSuccess('taken'), Stricter) },
    ],
  })
  const again = await newer.extension.project('p').runs.rerun(id)
  await newer.extension.idle()
  const { status, message } = await newer.extension.project('p').runs.get(again.id)
  assert.equal(status, 'exception')
  assert.match(message ?? '', /"count" must be less than 10/)
  assert.doesNotMatch(message ?? '', /4711/)
})

test('an in-process function that ignores its cancellation is abandoned, and its later reports are refused', async (t) => {
  let late: (() => void) | undefined
  const { project, automationId, extension } = await ranHere(
    t,
    async (context) => {
      context.progress(0.5)
      await new Promise<void>((resolve) => {
        late = resolve
      })
      context.markRunSuccess('late')
    },
    { graceMs: 20 },
  )
  const { id } = await project.runs.start(automationId)
  await eventually(async () => (await project.runs.get(id)).progress !== null, 'it has begun')
  await project.runs.cancel(id)
  await extension.idle()
  late?.()
  await turns()
  const { status, message } = await project.runs.get(id)
  assert.deepEqual([status, message], ['canceled', 'canceled'])
})

test('an abandoned attempt cannot report, and does not end the next attempt', async (t) => {
  const time = new TimeByHand()
  const backend = memoryBackend()
  const begun: string[] = []
  const starts: Parameters<typeof waiting.start>[0][] = []
  const executor = (name: string, ends: Promise<string | void>) => ({
    start: (start: Parameters<typeof waiting.start>[0]) => {
      begun.push(name)
      starts.push(start)
      return { cancel: () => undefined, ended: ends }
    },
  })
  let end: (message: string) => void = () => undefined
  const firstEnds = new Promise<string>((resolve) => {
    end = resolve
  })
  const first = automated(t, {
    backend: sharing(backend),
    functions: [definition(executor('first', firstEnds))],
    attemptsMax: 2,
  })
  const { project, automation: automationMade, modelId } = await withAutomation(first)
  const { id } = await project.runs.start(automationMade.id)
  await eventually(async () => begun.length === 1, 'the first server takes it up')
  const second = automated(t, {
    backend: sharing(backend),
    functions: [definition(executor('second', new Promise(() => undefined)))],
    attemptsMax: 2,
    sweepIntervalMs: 5,
    service: { environment: time.environment },
  })
  await second.service.ready()
  await eventually(() => {
    time.pass(61_000)
    return begun.length === 2
  }, 'the second server takes it up')
  const [lost, held] = starts.map(({ backend: its }) => its)
  const artifact = { name: 'a', sizeBytes: 1, idempotencyKey: 'a', content: Readable.from([Buffer.from('a')]) }
  await assert.rejects(lost.report({ sequence: 1, status: 'succeeded', message: 'late' }), {
    code: 'conflict',
    message: /started again/,
  })
  await assert.rejects(lost.storeArtifact(artifact), { code: 'conflict' })
  await assert.rejects(
    lost.createVersion({ projectId: 'p', modelId, rootObjectId: 'root', message: '', idempotencyKey: 'v' }),
    { code: 'conflict' },
  )
  end('it has ended without a status')
  await first.extension.idle()
  assert.equal((await project.runs.get(id)).status, 'pending')
  await held.report({ sequence: 1, status: 'running' })
  // The number was taken by the attempt that counts: this report must not pass for a repetition of that one.
  await assert.rejects(lost.report({ sequence: 1, status: 'running' }), { code: 'conflict', message: /started again/ })
  await held.report({ sequence: 2, status: 'succeeded', message: 'done' })
  assert.equal((await project.runs.get(id)).message, 'done')
  await assert.rejects(lost.report({ sequence: 2, status: 'succeeded', message: 'done' }), { code: 'conflict' })
})

test('a service that closes without a time limit waits for its runs', async (t) => {
  const backend = memoryBackend()
  const slow = defineFunction(async (context) => {
    context.progress(0.5, 'under way')
    await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
    await turns()
    context.markRunSuccess('in time')
  }, defineInputs({}))
  const first = automated(t, {
    backend: sharing(backend),
    functions: [{ id: 'checker', release: '1', function: slow }],
  })
  const {
    project,
    automation: { id: automationId },
  } = await withAutomation(first)
  const { id } = await project.runs.start(automationId)
  await eventually(async () => (await project.runs.get(id)).progress !== null, 'the run is under way')
  await first.service.close({ graceMs: Infinity })
  assert.equal(
    (
      await automated(t, { backend: sharing(backend) })
        .extension.project('p')
        .runs.get(id)
    ).message,
    'in time',
  )
})

test('a run that never ends is abandoned when the service closes, and the run says so', async (t) => {
  const backend = memoryBackend()
  const endless = { start: () => ({ cancel: () => undefined, ended: new Promise<void>(() => undefined) }) }
  const first = automated(t, { backend: sharing(backend), functions: [definition(endless)] })
  const {
    project,
    automation: { id: automationId },
  } = await withAutomation(first)
  const { id } = await project.runs.start(automationId)
  await eventually(async () => (await project.runs.get(id)).startedAt !== null, 'it has started')
  await first.service.close({ graceMs: 20 })
  const { status, message } = await automated(t, { backend: sharing(backend) })
    .extension.project('p')
    .runs.get(id)
  assert.deepEqual([status, message], ['exception', 'the service closed before the function had ended'])
})

test('a server that stalled keeps its own runs, and a run does not renew its own lease', async (t) => {
  const time = new TimeByHand()
  const { extension, service, ...fixture } = automated(t, {
    functions: [definition(waiting)],
    service: { environment: time.environment },
    sweepIntervalMs: 5,
    leaseMs: 60_000,
    alone: 'the clock leaps on the server that runs it, and on no other',
  })
  const {
    project,
    automation: { id: automationId },
  } = await withAutomation({ extension, service })
  const { id } = await project.runs.start(automationId)
  await eventually(async () => (await project.runs.get(id)).startedAt !== null, 'it has started')
  await turns(50)
  time.pass(61_000)
  await turns(50)
  assert.equal((await project.runs.get(id)).status, 'pending')
  assert.equal((await fixture.ask('POST', `p/runs/${id}/cancel`)).status, 200)
  await extension.idle()
})
