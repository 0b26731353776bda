import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { StowageError } from '../../src/errors.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { hooked, imageOf } from '../store/failures.ts'
import { undying } from '../store/support.ts'
import { eventually } from '../support/patience.ts'
import { automated, type Fixture, uploadObjects, withVersion } from './support.ts'

const GRACE = { olderThanMs: 2 * EPOCH_MS, undoMs: 2 * EPOCH_MS }
const OTHER = [{ id: 'other', children: [{ referencedId: 'twig' }] }, { id: 'twig' }]

interface Collected extends Fixture {
  readonly project: Project
  readonly modelId: string
  readonly versionId: string
  readonly pass: (epochs: number) => Promise<void>
  /** Runs before the next commit that puts a version. */
  beforeVersion: (() => Promise<void>) | undefined
}

/** A project with a version of `root` and `leaf`, and an upload that nothing leads to. */
async function collected(t: TestContext): Promise<Collected> {
  const memory = asGuarded(memoryBackend())
  const state: { beforeVersion: (() => Promise<void>) | undefined } = { beforeVersion: undefined }
  const backend = hooked(memory, async (call, detail, work) => {
    const before = call === 'commit' && detail.split('\0').includes('version') ? state.beforeVersion : undefined
    if (before !== undefined) state.beforeVersion = undefined
    await before?.()
    return work()
  })
  const fixture = automated(t, { backend: undying(backend), deletionGraceMs: 2 * EPOCH_MS, sweepIntervalMs: 5 })
  const ids = await withVersion(fixture)
  await uploadObjects(fixture.service, 'p', OTHER)
  const counter = new EpochCounter(memory.records, REAL_ENVIRONMENT)
  const project = createClient({
    url: 'http://in.process',
    token: undefined,
    retry: false,
    fetch: (url, init) => fixture.service.fetch(new Request(url, init)),
  }).project('p')
  return Object.assign(state, fixture, {
    ...ids,
    project,
    pass: async (epochs: number) => {
      for (let i = 0; i < epochs; i++) await counter.advance()
    },
  })
}

test('a version that is created on condemned objects revives them', async (t) => {
  const { project, extension, modelId, pass } = await collected(t)
  await pass(3)
  assert.equal((await project.upkeep.collect(GRACE)).condemned.objects, 2)
  assert.equal((await project.has(['other', 'twig'])).held.size, 0)
  await extension.project('p').versions.create(modelId, { rootObjectId: 'other', message: 'after all' })
  assert.equal((await project.has(['other', 'twig'])).held.size, 2)
  await pass(6)
  const report = await project.upkeep.collect(GRACE)
  assert.deepEqual([report.condemned.objects, report.freed.objects], [0, 0])
})

test('a version is refused whose objects are freed between its check and its commit', async (t) => {
  const fixture = await collected(t)
  const { project, extension, modelId, pass } = fixture
  const { versions } = extension.project('p')
  await pass(3)
  fixture.beforeVersion = async () => {
    assert.equal((await project.upkeep.collect(GRACE)).condemned.objects, 2)
    await pass(3)
    assert.equal((await project.upkeep.collect(GRACE)).freed.objects, 2)
  }
  await assert.rejects(
    versions.create(modelId, { rootObjectId: 'other', message: 'too late' }),
    (error: StowageError) => error.code === 'objects_missing',
  )
  assert.equal((await versions.list(modelId)).items.length, 1)
})

test('a deleted version keeps its objects through its grace; then they are collected as those of an old version', async (t) => {
  const { backend, project, extension, modelId, versionId, pass } = await collected(t)
  const { versions } = extension.project('p')
  await versions.create(modelId, { rootObjectId: 'other', message: 'stays' })
  await pass(3)
  await project.upkeep.collect(GRACE)
  await versions.delete(modelId, versionId)
  await pass(1)
  assert.equal((await project.upkeep.collect(GRACE)).condemned.objects, 0)
  await pass(2)
  const isThere = async (): Promise<boolean> => {
    const { records } = await imageOf(backend)
    return records.some(({ key }) => Buffer.from(key).toString().split('\0').includes(versionId))
  }
  await eventually(async () => !(await isThere()), 'the version is gone for good')
  const { condemned } = await project.upkeep.collect(GRACE)
  assert.deepEqual([condemned.objects, condemned.byCause.oldVersion.objects], [2, 2])
  await pass(3)
  assert.equal((await project.upkeep.collect(GRACE)).freed.objects, 2)
  assert.equal(await project.get('root'), undefined)
  assert.equal((await project.graphInfo('other'))?.objects, 2)
})
