import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { AutomationTrigger, FunctionDefinition } from '../../src/automation-server/index.ts'
import { ActiveRuns } from '../../src/automation-server/domain/active-runs.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { AutomationStore } from '../../src/automation-server/records/store.ts'
import { hooked, imageOf, putRecord, sharing } from '../store/failures.ts'
import { TimeByHand } from '../store/time.ts'
import { EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { eventually } from '../support/patience.ts'
import { automated, definition, type FixtureOptions, reporting, waiting, withAutomation } from './support.ts'

const HOUR_MS = 3_600_000
const SUCCEEDING: FunctionDefinition = definition(reporting({ status: 'succeeded', message: 'done' }))
/** Nobody knows where the service is, so no run is ever taken up. */
const NOBODY_TAKES_UP: FixtureOptions = { serverUrl: () => new Promise(() => undefined) }

async function prepared(t: TestContext, options: FixtureOptions, trigger: AutomationTrigger = 'manual') {
  const fixture = automated(t, { functions: [definition(waiting)], ...options })
  const { project, automation, modelId } = await withAutomation(fixture, { trigger })
  return {
    ...fixture,
    project,
    automation,
    modelId,
    newVersion: (message: string) => project.versions.create(modelId, { rootObjectId: 'root', message }),
  }
}

async function waitingMarks({ backend }: Pick<Awaited<ReturnType<typeof prepared>>, 'backend'>): Promise<number> {
  return (await imageOf(backend)).records.filter(({ key }) =>
    Buffer.from(key).toString('latin1').includes('\0waiting\0'),
  ).length
}

test('the queue of an automation is bounded, even for concurrent requests', async (t) => {
  const { ask, project, automation, modelId } = await prepared(t, {
    ...NOBODY_TAKES_UP,
    limits: { pendingRunsMax: 3 },
    alone: 'each server may add one run beyond the limit at the same time',
  })
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => ask('POST', `p/automations/${automation.id}/runs`, {})),
  )
  assert.equal(answers.filter(({ status }) => status === 201).length, 3)
  const refused = answers.find(({ status }) => status !== 201) ?? assert.fail('all were taken')
  assert.deepEqual([refused.status, refused.json.code], [409, 'too_many_runs'])
  assert.match(refused.json.message, /^the queue of this automation is full \(3 runs\); try again/)
  const [first, second] = (await project.runs.list()).items
  await project.runs.cancel(first.id)
  await project.runs.rerun(first.id)
  await project.runs.cancel(second.id)
  await project.runs.start(automation.id)
  await assert.rejects(project.runs.rerun(first.id), { code: 'too_many_runs', statusCode: 409 })
  const other = await project.automations.create({
    name: 'Other',
    functionId: 'checker',
    modelId,
    inputs: {},
    trigger: 'manual',
  })
  assert.equal((await project.runs.start(other.id)).status, 'pending')
})

test('a claimed run leaves the queue, whatever its outcome', async (t) => {
  const fixture = await prepared(t, {
    concurrency: 1,
    limits: { pendingRunsMax: 1 },
    alone: 'each server has slots of its own',
  })
  const { project, automation, extension } = fixture
  const isTakenUp = (id: string) =>
    eventually(async () => (await project.runs.get(id)).startedAt !== null, 'it is taken up')
  const first = await project.runs.start(automation.id)
  await isTakenUp(first.id)
  const second = await project.runs.start(automation.id)
  await assert.rejects(project.runs.start(automation.id), { code: 'too_many_runs' })
  await project.runs.cancel(first.id)
  await isTakenUp(second.id)
  const third = await project.runs.start(automation.id)
  for (const { id } of [second, third]) await project.runs.cancel(id)
  await extension.idle()
  assert.equal(await waitingMarks(fixture), 0)
})

test('a new version always queues its run: the oldest queued run is superseded, requested ones last', async (t) => {
  const { project, automation, newVersion } = await prepared(
    t,
    { ...NOBODY_TAKES_UP, limits: { pendingRunsMax: 3 } },
    'version',
  )
  const asked = await project.runs.start(automation.id)
  const versions: string[] = []
  for (const message of ['two', 'three', 'four', 'five']) versions.push((await newVersion(message)).id)
  const statusOf = async () =>
    Object.fromEntries(
      (await project.runs.list()).items.map(({ versionId, triggeredBy, status }) => [
        `${triggeredBy.kind} ${versions.indexOf(versionId)}`,
        status,
      ]),
    )
  assert.deepEqual(await statusOf(), {
    'manual -1': 'pending',
    'version 0': 'canceled',
    'version 1': 'canceled',
    'version 2': 'pending',
    'version 3': 'pending',
  })
  const [superseded] = (await project.runs.list({ status: 'canceled' })).items
  assert.match(
    superseded.message ?? '',
    /^superseded: a new version arrived while the queue of this automation was full \(3 runs\)/,
  )
  assert.ok(superseded.endedAt !== null)
  for (const { id } of (await project.runs.list({ status: 'pending' })).items.filter(({ id }) => id !== asked.id))
    await project.runs.cancel(id)
  for (let more = 0; more < 2; more++) await project.runs.start(automation.id)
  const { id: versionId } = await newVersion('six')
  assert.equal((await project.runs.get(asked.id)).status, 'canceled')
  assert.equal((await project.runs.list({ versionId })).items[0].status, 'pending')
})

test('after the limit is lowered, the next version supersedes the excess runs', async (t) => {
  const backend = memoryBackend()
  const before = await prepared(
    t,
    { ...NOBODY_TAKES_UP, backend: sharing(backend), limits: { pendingRunsMax: 5 } },
    'version',
  )
  for (const message of ['two', 'three', 'four', 'five']) await before.newVersion(message)
  await before.service.close({ graceMs: 0 })
  const after = automated(t, {
    ...NOBODY_TAKES_UP,
    backend: sharing(backend),
    functions: [SUCCEEDING],
    limits: { pendingRunsMax: 2 },
  })
  const { runs, versions } = after.extension.project('p')
  const { id } = await versions.create(before.modelId, { rootObjectId: 'root', message: 'six' })
  const { items } = await runs.list({ status: 'pending' })
  assert.deepEqual([items.length, items[0].versionId], [2, id])
  assert.equal((await runs.list({ status: 'canceled' })).items.length, 3)
})

test('a run that waits too long times out with a reason and is not claimed later', async (t) => {
  const backend = memoryBackend()
  const time = new TimeByHand()
  const shared = (options: FixtureOptions): FixtureOptions => ({
    sweepIntervalMs: 10,
    pendingMsMax: 2 * HOUR_MS,
    ...options,
    backend: sharing(backend),
    service: { environment: time.environment },
  })
  const { project, automation, service } = await prepared(t, shared(NOBODY_TAKES_UP))
  const old = await project.runs.start(automation.id)
  await eventually(async () => {
    time.pass(HOUR_MS)
    return (await project.runs.get(old.id)).status === 'timeout'
  }, 'the old one is a time-out')
  const young = await project.runs.start(automation.id)
  assert.match(
    (await project.runs.get(old.id)).message ?? '',
    /^the run waited for 2 h, and no server took it up: there was none with the function "checker", or other runs had all its places \(2 at a time here\); run it again$/,
  )
  assert.equal((await project.runs.get(young.id)).status, 'pending')
  await service.close({ graceMs: 0 })
  const late = automated(t, shared({ functions: [SUCCEEDING], ...NOBODY_TAKES_UP }))
  await late.service.ready()
  await eventually(async () => {
    time.pass(HOUR_MS)
    return (await late.extension.project('p').runs.get(young.id)).endedAt !== null
  }, 'the young one has ended')
  assert.equal((await late.extension.project('p').runs.get(young.id)).status, 'timeout')
  assert.equal(await waitingMarks({ backend }), 0)
})

test('a run whose function no server has ends with a message that names it', async (t) => {
  const backend = memoryBackend()
  const first = await prepared(t, { ...NOBODY_TAKES_UP, backend: sharing(backend) })
  const { id } = await first.project.runs.start(first.automation.id)
  await first.service.close({ graceMs: 0 })
  // A day in which other servers were there.
  await new EpochCounter(backend.records, REAL_ENVIRONMENT).advance(24 * 6 + 1)
  const without = automated(t, { backend: sharing(backend) })
  await without.service.ready()
  await eventually(
    async () => (await without.extension.project('p').runs.get(id)).status === 'timeout',
    'it is a time-out',
  )
  const { message, startedAt, endedAt } = await without.extension.project('p').runs.get(id)
  assert.equal(
    message,
    'the run waited for 24 h, and no server took it up: its function "checker" is registered at none that was there; register it, then run it again',
  )
  assert.equal(startedAt, null)
  assert.ok(endedAt !== null)
})

test('queued runs are found with few reads, and a damaged one is reported and blocks no other', async (t) => {
  const backend = memoryBackend()
  const before = await prepared(t, { ...NOBODY_TAKES_UP, backend: sharing(backend) })
  const ids: string[] = []
  for (let count = 0; count < 10; count++) ids.push((await before.project.runs.start(before.automation.id)).id)
  await before.service.close({ graceMs: 0 })
  const damaged =
    (await imageOf(backend)).records.find(({ key }) =>
      Buffer.from(key).toString('latin1').includes(`\0run\0${ids[1]}`),
    ) ?? assert.fail('it has a record')
  await putRecord(
    backend,
    damaged.key,
    damaged.value.map((byte, at) => (at === 40 ? byte ^ 1 : byte)),
  )
  let reads = 0
  const counting = hooked(backend, (call, _detail, work) => {
    if (call === 'getMany') reads++
    return work()
  })
  const errors: unknown[] = []
  const active = new ActiveRuns(new AutomationStore(counting, { clock: Date, newId: () => '' }), (error) =>
    errors.push(error),
  )
  const found: string[] = []
  for await (const { run } of active.all()) found.push(run.id)
  for await (const { run } of active.all()) assert.notEqual(run.id, ids[1])
  assert.deepEqual(found.toSorted(), ids.filter((id) => id !== ids[1]).toSorted())
  assert.equal(errors.length, 1, 'it is told once')
  assert.match(String(errors), /does not match its CRC-32/)
  assert.ok(reads <= 4, `${reads} reads`)
  const after = automated(t, {
    backend: sharing(backend),
    functions: [SUCCEEDING],
    service: { logger: { error: () => undefined } },
  })
  await after.service.ready()
  await eventually(
    async () => (await after.extension.project('p').runs.get(ids[9])).status === 'succeeded',
    'it is run',
  )
})
