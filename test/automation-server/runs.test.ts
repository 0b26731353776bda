import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { hooked, sharing } from '../store/failures.ts'
import { TimeByHand } from '../store/time.ts'
import { eventually } from '../support/patience.ts'
import {
  automated,
  definition,
  type FixtureOptions,
  inProcess,
  reporting,
  uploadObjects,
  waiting,
  withAutomation,
} from './support.ts'
import type { TestContext } from 'node:test'
import type { AutomationTrigger, Run, RunExecutor, RunStart } from '../../src/automation-server/index.ts'

async function prepared(
  t: TestContext,
  executor: RunExecutor,
  options: FixtureOptions & { readonly trigger?: AutomationTrigger } = {},
) {
  const { trigger = 'manual', ...others } = options
  const fixture = automated(t, { functions: [definition(executor)], ...others })
  const { project, automation, modelId, versionId } = await withAutomation(fixture, { trigger })
  return { ...fixture, project, automation, modelId, versionId }
}

test('a version is refused while its root or a descendant is missing', async (t) => {
  const { service, extension } = automated(t)
  const { models, versions } = extension.project('p')
  const { id } = await models.create({ name: 'House' })
  await assert.rejects(versions.create(id, { rootObjectId: 'root', message: '' }), { code: 'objects_missing' })
  await uploadObjects(service, 'p', [{ id: 'root', child: { referencedId: 'leaf' }, __closure: { leaf: 1 } }])
  await assert.rejects(versions.create(id, { rootObjectId: 'root', message: '' }), {
    code: 'objects_missing',
    message: /leaf/,
  })
  await uploadObjects(service, 'p', [{ id: 'leaf' }])
  const first = await versions.create(id, { rootObjectId: 'root', message: 'one', source: 'editor' })
  const second = await versions.create(id, { rootObjectId: 'leaf', message: 'two' })
  assert.deepEqual((await versions.list(id)).items, [second, first])
  const { versionCount, latestVersionId } = await models.get(id)
  assert.deepEqual([versionCount, latestVersionId], [2, second.id])
  await assert.rejects(versions.create('0'.repeat(32), { rootObjectId: 'root', message: '' }), { code: 'not_found' })
})

test('concurrent versions are all kept, in one order', async (t) => {
  const { service, extension } = automated(t)
  await uploadObjects(service, 'p', [{ id: 'root' }])
  const { models, versions } = extension.project('p')
  const { id } = await models.create({ name: 'House' })
  const made = await Promise.all(
    Array.from({ length: 6 }, (_, at) => versions.create(id, { rootObjectId: 'root', message: `version ${at}` })),
  )
  const { items } = await versions.list(id)
  assert.deepEqual(new Set(items.map((version) => version.id)), new Set(made.map((version) => version.id)))
  const { latestVersionId, versionCount } = await models.get(id)
  assert.deepEqual([latestVersionId, versionCount], [items[0].id, 6])
})

test('a run without a final status, or whose executor fails, is an exception that says so', async (t) => {
  const silent = await prepared(
    t,
    inProcess(async () => undefined),
  )
  const { id } = await silent.project.runs.start(silent.automation.id)
  await silent.extension.idle()
  const { status, message, endedAt } = await silent.project.runs.get(id)
  assert.deepEqual([status, message], ['exception', 'the function ended without reporting a status'])
  assert.ok(endedAt !== null)
  const odd = Object.assign(new Error('x'), { message: { status: 503 } })
  for (const [error, words] of [
    [new Error('the process could not be started'), /^the process could not be started$/],
    [odd, /status: 503/],
  ] as const) {
    const failing = await prepared(
      t,
      inProcess(() => Promise.reject(error)),
    )
    const run = await failing.project.runs.start(failing.automation.id)
    await failing.extension.idle()
    assert.match((await failing.project.runs.get(run.id)).message ?? '', words)
  }
})

test('a canceled run is told to stop, keeps its status, and can be run again', async (t) => {
  const reasons: string[] = []
  const executor = inProcess(async ({ backend }, stopped) => {
    await backend.report({ sequence: 1, status: 'running' })
    reasons.push(await stopped)
    await assert.rejects(backend.report({ sequence: 2, status: 'succeeded', message: 'late' }), { code: 'conflict' })
  })
  const { project, automation, extension } = await prepared(t, executor)
  const { id } = await project.runs.start(automation.id)
  await eventually(async () => (await project.runs.get(id)).status === 'running', 'it runs')
  await assert.rejects(project.runs.rerun(id), { code: 'conflict' })
  assert.equal((await project.runs.cancel(id)).status, 'canceled')
  assert.equal((await project.runs.cancel(id)).status, 'canceled')
  await extension.idle()
  assert.deepEqual(reasons, ['canceled'])
  const again = await project.runs.rerun(id)
  assert.deepEqual(again.triggeredBy, { kind: 'rerun', runId: id })
  await project.runs.cancel(again.id)
  await extension.idle()
})

test('a run canceled between claim and start stops at once, not at the next lease renewal', async (t) => {
  const inner = memoryBackend()
  let cancel: (() => Promise<unknown>) | undefined
  const reasons: string[] = []
  const executor = inProcess(async (_start, stopped) => void reasons.push(await stopped))
  const backend = hooked(inner, async (call, detail, work) => {
    const wanted = cancel
    if (call === 'getMany' && wanted !== undefined && detail.includes('\0inputs\0')) {
      cancel = undefined
      await wanted()
    }
    return work()
  })
  const { project, automation, extension } = await prepared(t, executor, { backend, leaseMs: 600_000 })
  cancel = async () => project.runs.cancel((await project.runs.list()).items[0].id)
  await project.runs.start(automation.id)
  await eventually(async () => reasons.length > 0, 'it is told to stop')
  await extension.idle()
  assert.deepEqual(reasons, ['canceled'])
})

test('a bounded number of runs is active, the oldest start first, and the others stay pending', async (t) => {
  const { project, automation, extension } = await prepared(t, waiting, {
    concurrency: 2,
    alone: 'each server has slots of its own',
  })
  const started: Run[] = []
  for (let count = 0; count < 4; count++) started.push(await project.runs.start(automation.id))
  await eventually(
    async () => (await project.runs.list()).items.filter(({ startedAt }) => startedAt !== null).length === 2,
    'two have started',
  )
  const waitingRuns = (await project.runs.list({ status: 'pending' })).items.filter(
    ({ startedAt }) => startedAt === null,
  )
  assert.equal(waitingRuns.length, 2)
  for (const { id } of started) await project.runs.cancel(id)
  await extension.idle()
})

test('a lost run times out when its lease expires, and its late report is refused', async (t) => {
  let lost: RunStart | undefined
  const executor = inProcess(async (start, stopped) => {
    lost = start
    await start.backend.report({ sequence: 1, status: 'running' })
    await stopped
  })
  const { project, automation, backend, service } = await prepared(t, executor, { leaseMs: 60_000 })
  const { id } = await project.runs.start(automation.id)
  await eventually(async () => (await project.runs.get(id)).status === 'running', 'it runs')
  // Another server on the same storage, for which the time of the lease passes.
  const time = new TimeByHand()
  const { environment } = time
  const other = automated(t, { backend: sharing(backend), sweepIntervalMs: 5, service: { environment } })
  await other.service.ready()
  await eventually(async () => {
    time.pass(61_000)
    return (await other.extension.project('p').runs.get(id)).status === 'timeout'
  }, 'it is a time-out')
  assert.match((await project.runs.get(id)).message ?? '', /the run was silent/)
  await assert.rejects(async () => lost?.backend.report({ sequence: 2, status: 'succeeded', message: 'late' }), {
    code: 'conflict',
  })
  await service.close({ graceMs: 100 })
})

test('reports renew the lease, and a run that takes too long is ended', async (t) => {
  const reasons: string[] = []
  const executor = inProcess(async (_start, stopped) => void reasons.push(await stopped))
  const { project, automation, extension } = await prepared(t, executor, { runMsMax: 50 })
  const { id } = await project.runs.start(automation.id)
  await eventually(async () => (await project.runs.get(id)).status === 'timeout', 'it is a time-out')
  await extension.idle()
  assert.deepEqual(reasons, ['timeout'])
})

test('a restart claims pending runs, and runs of unknown functions stay pending', async (t) => {
  const backend = memoryBackend()
  const kept = sharing(backend)
  const first = await prepared(t, waiting, { backend: kept, concurrency: 1 })
  const [one, two] = [
    await first.project.runs.start(first.automation.id),
    await first.project.runs.start(first.automation.id),
  ]
  await first.service.close({ graceMs: 0 })
  const without = automated(t, { backend: sharing(backend) })
  await without.service.ready()
  assert.equal((await without.extension.project('p').runs.get(two.id)).status, 'pending')
  await without.service.close({ graceMs: 0 })
  const second = automated(t, {
    backend: sharing(backend),
    functions: [definition(reporting({ status: 'succeeded', message: 'done' }))],
  })
  await second.service.ready()
  await eventually(
    async () => (await second.extension.project('p').runs.get(two.id)).status === 'succeeded',
    'the second server ends it',
  )
  assert.equal(
    (await second.extension.project('p').runs.get(one.id)).message,
    'the service closed before the function had ended',
  )
})

test('a version of a run starts other automations but not its own, and two automations cannot loop', async (t) => {
  const versioning = inProcess(async ({ backend, projectId, run }) => {
    await backend.createVersion({
      projectId,
      modelId: run.modelId,
      rootObjectId: 'root',
      message: `by ${run.automationId}`,
      idempotencyKey: 'one',
    })
    await backend.report({ sequence: 1, status: 'succeeded', message: 'made a version' })
  })
  const { project, automation, extension, modelId } = await prepared(t, versioning, { trigger: 'version' })
  const other = await project.automations.create({
    name: 'Other',
    functionId: 'checker',
    modelId,
    inputs: {},
    trigger: 'version',
  })
  const { id: versionId } = await project.versions.create(modelId, { rootObjectId: 'root', message: 'by a person' })
  await extension.idle()
  const { items } = await project.runs.list()
  // Each on the person's version, and each on the other's version that came of it: four runs, then nobody is left.
  assert.deepEqual(
    items.map(({ automationId }) => automationId).sort(),
    [automation.id, automation.id, other.id, other.id].sort(),
  )
  assert.equal(items.filter((run) => run.versionId === versionId).length, 2)
  assert.ok(items.every(({ status, triggeredBy }) => status === 'succeeded' && triggeredBy.kind === 'version'))
  assert.equal((await project.versions.list(modelId)).items.length, 6)
})

test('runs are listed by automation, model and version, in pages', async (t) => {
  const { project, automation, extension, modelId, versionId } = await prepared(
    t,
    reporting({ status: 'succeeded', message: '' }),
  )
  const other = await project.automations.create({
    name: 'Other',
    functionId: 'checker',
    modelId,
    inputs: {},
    trigger: 'manual',
  })
  const started: string[] = []
  for (const { id } of [automation, other, automation, automation]) started.push((await project.runs.start(id)).id)
  await extension.idle()
  const first = await project.runs.list({ automationId: automation.id, limit: 2 })
  assert.equal(first.items.length, 2)
  const rest = await project.runs.list({ automationId: automation.id, limit: 2, cursor: first.cursor ?? '' })
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ id }) => id).sort(),
    [started[0], started[2], started[3]].sort(),
  )
  assert.equal(rest.cursor, null)
  assert.equal((await project.runs.list({ modelId, versionId, status: 'succeeded' })).items.length, 4)
  assert.equal((await project.runs.list({ status: 'failed' })).items.length, 0)
  assert.equal((await project.runs.list({ automationId: other.id })).items[0].id, started[1])
})
