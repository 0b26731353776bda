import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { checkAutomation } from '../../src/automation-server/upkeep/check.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { createObjectService, openAccess, type StorageBackend } from '../../src/index.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { EpochCounter } from '../../src/store/upkeep/epochs.ts'
import type { Finding } from '../../src/store/upkeep/finding.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { imageOf, putBlob, putRecord, sharing } from '../store/failures.ts'
import { eventually } from '../support/patience.ts'
import type { Run } from '../../src/automation-server/index.ts'
import {
  automated,
  definition,
  type Fixture,
  inProcess,
  uploadObjects,
  withAutomation,
  withVersion,
} from './support.ts'

const DAY_MS = 86_400_000

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

async function ownRecords(backend: StorageBackend): Promise<number> {
  return (await imageOf(backend)).records.filter(({ key }) => key[0] === 'x'.charCodeAt(0)).length
}

async function ownBlobs(backend: StorageBackend): Promise<readonly string[]> {
  return (await imageOf(backend)).blobs.map(({ name }) => name).filter((name) => name.startsWith('x/'))
}

/** A run with an artifact, annotations in a blob, and lines. */
async function used(
  t: TestContext,
  backend: StorageBackend,
  options: Parameters<typeof automated>[1] = {},
): Promise<Fixture & { readonly runId: string; readonly artifactId: string }> {
  const executor = inProcess(async (start) => {
    await start.backend.storeArtifact({
      name: 'a.csv',
      sizeBytes: 3,
      idempotencyKey: 'a',
      content: (async function* () {
        yield Buffer.from('a,b')
      })(),
    })
    const annotations = Array.from({ length: 600 }, (_, at) => ({
      category: 'Fire',
      level: 'ERROR' as const,
      objectAppIds: { [`object ${at}`]: null },
      message: 'x'.repeat(80),
      metadata: null,
    }))
    await start.backend.report({ sequence: 1, annotations, logs: [{ atMs: 1, level: 'info', message: 'a line' }] })
    await start.backend.report({ sequence: 2, status: 'succeeded', message: 'done', result: { a: 1 } })
  })
  const fixture = automated(t, { backend: sharing(backend), functions: [definition(executor)], ...options })
  const { project, automation } = await withAutomation(fixture, { inputs: { apiKey: 'hush' } })
  const { id: runId } = await project.runs.start(automation.id)
  await fixture.extension.idle()
  const { artifacts } = await project.runs.get(runId)
  return { ...fixture, runId, artifactId: artifacts[0].id }
}

test('a removed project is unreadable at once, its space is reclaimed, and it can be filled again', async (t) => {
  const backend = memoryBackend()
  const { service, extension, ask, runId, artifactId } = await used(t, backend)
  const other = await extension.project('q').models.create({ name: 'Other' })
  await service.project('p').remove()
  for (const path of [`p/runs/${runId}`, `p/artifacts/${artifactId}`])
    assert.equal((await ask('GET', path)).status, 404)
  assert.deepEqual((await extension.project('p').models.list()).items, [])
  await eventually(async () => (await ownBlobs(backend)).length === 0, 'the blobs are gone')
  // What is left: the heads of both projects, the other's model, and the key of tokens.
  await eventually(async () => (await ownRecords(backend)) === 4, 'the records are gone')
  assert.deepEqual((await extension.project('q').models.list()).items, [other])
  await withVersion({ service, extension })
  assert.equal((await extension.project('p').runs.list()).items.length, 0)
  assert.deepEqual(await all(checkAutomation(backend)), [])
})

test('a project that contains only a model is listed until it is removed', async (t) => {
  const { service, extension } = automated(t)
  await extension.project('only a model').models.create({ name: 'House' })
  await uploadObjects(service, 'objects', [{ id: 'root' }])
  await extension.project('objects').models.create({ name: 'House' })
  assert.deepEqual((await all(service.projects())).flat().sort(), ['objects', 'only a model'])
  await service.project('only a model').remove()
  assert.deepEqual((await all(service.projects())).flat(), ['objects'])
})

test('a run of a removed project is told to stop', async (t) => {
  const reasons: string[] = []
  const errors: unknown[] = []
  const executor = inProcess(async (_start, stopped) => void reasons.push(await stopped))
  const { service, extension } = automated(t, {
    functions: [definition(executor)],
    service: { logger: { error: (fields) => errors.push(fields) } },
  })
  const { project, automation } = await withAutomation({ service, extension })
  const { id } = await project.runs.start(automation.id)
  await eventually(async () => (await project.runs.get(id)).startedAt !== null, 'it has started')
  await service.project('p').remove()
  await extension.idle()
  assert.deepEqual(reasons, ['lost'])
  assert.deepEqual(errors, [])
})

test('check, sweep and reindex of the object store ignore automation data', async (t) => {
  const backend = memoryBackend()
  const { service, runId, artifactId } = await used(t, backend)
  await service.close()
  const before = await imageOf(backend)
  const own = (image: typeof before) => [
    image.records.filter(({ key }) => key[0] === 'x'.charCodeAt(0)),
    image.blobs.filter(({ name }) => name.startsWith('x/')),
  ]
  assert.deepEqual(await all(checkStore(backend)), [])
  await all(reindexStore(backend))
  assert.deepEqual(own(await imageOf(backend)), own(before))
  // A service without automation, after the time in which blobs that no record names are kept.
  const plain = createObjectService({
    backend: sharing(backend),
    access: openAccess(),
    clock: { now: () => Date.now() + DAY_MS },
  })
  await plain.ready()
  await plain.close()
  assert.deepEqual(own(await imageOf(backend)), own(before))
  const again = automated(t, { backend: sharing(backend) })
  assert.equal((await again.ask('GET', `p/runs/${runId}`)).json.status, 'succeeded')
  const file = await again.service.fetch(new Request(`http://in.process/api/v1/projects/p/artifacts/${artifactId}`))
  assert.equal(await file.text(), 'a,b')
})

test('check reports a damaged record, a missing or changed blob, and an unreferenced one', async (t) => {
  const backend = memoryBackend()
  const { service } = await used(t, backend)
  await service.close()
  const { records } = await imageOf(backend)
  const subjects = async (): Promise<readonly (readonly [Finding['severity'], string])[]> =>
    (await all(checkAutomation(backend))).map(({ severity, subject }) => [
      severity,
      subject.replace(/[0-9a-f]{16,}.*/, '…'),
    ])
  assert.deepEqual(await subjects(), [])
  const [artifactBlob, resultBlob] = await Promise.all(
    ['artifact', 'annotation'].map(
      async (kind) => (await ownBlobs(backend)).find((name) => name.includes(`-${kind}-`)) ?? '',
    ),
  )
  await putBlob(backend, artifactBlob, Buffer.from('a,c'))
  await backend.blobs.remove([resultBlob])
  await putBlob(backend, `${artifactBlob}0`, Buffer.from('left'))
  assert.deepEqual(
    (await subjects()).toSorted((a, b) => (a[1] < b[1] ? -1 : 1)),
    [
      ['damage', 'annotations of a run'],
      ['damage', 'artifact …'],
      ['note', 'blob x/…'],
    ],
  )
  const run = records.find(({ key }) => Buffer.from(key).toString('latin1').includes('\0run\0'))
  assert.ok(run !== undefined)
  await putRecord(
    backend,
    run.key,
    run.value.map((byte, at) => (at === 40 ? byte ^ 1 : byte)),
  )
  assert.ok(
    (await all(checkAutomation(backend))).some(
      ({ severity, projectId, subject }) =>
        severity === 'damage' && projectId === 'p' && subject.startsWith('run record'),
    ),
  )
})

test('unreferenced blobs are removed after a grace period, and referenced ones stay', async (t) => {
  const backend = memoryBackend()
  const { service } = await used(t, backend)
  await service.close()
  const named = await ownBlobs(backend)
  await putBlob(backend, `${named[0]}0`, Buffer.from('cut off'))
  await putBlob(backend, `x/${'0'.repeat(64)}/00000001-artifact-a`, Buffer.from('of a project whose records are lost'))
  const clock = { now: () => Date.now() + DAY_MS }
  const early = automated(t, { backend: sharing(backend), service: { clock } })
  await early.service.ready()
  const isMarked = async (): Promise<boolean> =>
    (await imageOf(backend)).records.some(({ key }) => Buffer.from(key).toString('latin1').includes('\0orphan\0'))
  await eventually(isMarked, 'what nothing names is marked')
  await early.service.close()
  assert.equal((await ownBlobs(backend)).length, named.length + 2, 'a clock that leaps removes nothing')
  // Two hours in which servers were there: as long as a run may last, and one more.
  await new EpochCounter(backend.records, REAL_ENVIRONMENT).advance(13)
  const late = automated(t, { backend: sharing(backend) })
  await late.service.ready()
  await eventually(async () => (await ownBlobs(backend)).length === named.length + 1, 'what nothing names is gone')
  assert.deepEqual(
    (await ownBlobs(backend)).filter((name) => named.includes(name)),
    named,
  )
})

test('a run is removed with all its data after its retention period', async (t) => {
  const backend = memoryBackend()
  const { service, runId, artifactId } = await used(t, backend)
  await service.close()
  const before = await ownRecords(backend)
  const inTime = automated(t, {
    backend: sharing(backend),
    runRetentionMs: 10 * DAY_MS,
    service: { clock: { now: () => Date.now() + 9 * DAY_MS } },
  })
  assert.equal((await inTime.ask('GET', `p/runs/${runId}`)).status, 200)
  await inTime.service.close()
  const late = automated(t, {
    backend: sharing(backend),
    runRetentionMs: 10 * DAY_MS,
    service: { clock: { now: () => Date.now() + 11 * DAY_MS } },
  })
  await late.service.ready()
  await eventually(async () => (await ownBlobs(backend)).length === 0, 'the blobs are gone')
  for (const path of [`p/runs/${runId}`, `p/artifacts/${artifactId}`, `p/runs/${runId}/logs`])
    assert.equal((await late.ask('GET', path)).status, 404)
  // The run, its inputs, its place among its automation's, a batch, lines, what it handed over, the artifact and its
  // key.
  await eventually(async () => (await ownRecords(backend)) === before - 8, 'the records are gone')
  assert.equal((await late.extension.project('p').models.list()).items.length, 1)
  assert.deepEqual(await all(checkAutomation(backend)), [])
})

test('the annotations, the log and the files of a run go when their own times have passed, and the run stays', async (t) => {
  const backend = memoryBackend()
  const { service, runId, artifactId } = await used(t, backend)
  await service.close()
  const before = await ownRecords(backend)
  const times = { annotationRetentionMs: 10 * DAY_MS, logRetentionMs: 20 * DAY_MS, artifactRetentionMs: 30 * DAY_MS }
  const after = async (days: number, blobs: number, records: number): Promise<Fixture> => {
    const fixture = automated(t, {
      backend: sharing(backend),
      ...times,
      service: { clock: { now: () => Date.now() + days * DAY_MS } },
    })
    await fixture.service.ready()
    await eventually(async () => (await ownBlobs(backend)).length === blobs, `${blobs} blobs after ${days} days`)
    await eventually(async () => (await ownRecords(backend)) === before - records, `records after ${days} days`)
    return fixture
  }
  const runOf = async ({ ask }: Fixture): Promise<Run> => (await ask('GET', `p/runs/${runId}`)).json as unknown as Run
  const [first, second, third] = [
    { days: 9, blobs: 2, records: 0 },
    { days: 11, blobs: 1, records: 1 },
    { days: 31, blobs: 0, records: 3 },
  ]
  const inTime = await after(first.days, first.blobs, first.records)
  const whole = await runOf(inTime)
  assert.deepEqual([whole.expired, whole.artifacts.length], [[], 1])
  await inTime.service.close()
  const later = await after(second.days, second.blobs, second.records)
  const without = await runOf(later)
  assert.deepEqual([without.expired, without.artifacts.length], [['annotations'], 1])
  assert.deepEqual(without.annotations, whole.annotations, 'the numbers of annotations stay')
  assert.deepEqual((await later.ask('GET', `p/runs/${runId}/annotations`)).json.items, [])
  assert.notDeepEqual((await later.ask('GET', `p/runs/${runId}/logs`)).json.items, [])
  await later.service.close()
  const late = await after(third.days, third.blobs, third.records)
  const bare = await runOf(late)
  assert.deepEqual(
    [bare.status, bare.expired, bare.artifacts],
    [whole.status, ['annotations', 'logs', 'artifacts'], []],
  )
  assert.deepEqual((await late.ask('GET', `p/runs/${runId}/logs`)).json.items, [])
  assert.equal((await late.ask('GET', `p/artifacts/${artifactId}`)).status, 404)
  assert.deepEqual(await all(checkAutomation(backend)), [])
})
