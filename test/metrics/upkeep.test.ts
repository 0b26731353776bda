import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createClient, type Project } from '../../src/client/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { ServiceEvent } from '../../src/index.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'
import { automated, type Fixture, uploadObjects, withVersion } from '../automation-server/support.ts'
import { eventually } from '../support/patience.ts'
import { valueOf } from './value-of.ts'

/* What the events and counters of collection, compaction, deletions and pins say, beside what was done. */

const GRACE = { olderThanMs: EPOCH_MS, undoMs: EPOCH_MS }

interface Measured extends Fixture {
  readonly modelId: string
  readonly versionId: string
  readonly project: Project
  readonly pass: (epochs: number) => Promise<void>
  readonly of: <T extends ServiceEvent['type']>(type: T) => readonly Extract<ServiceEvent, { type: T }>[]
  /** The value of a counter, without its prefix. */
  readonly counted: (name: string, labels?: Readonly<Record<string, string>>) => Promise<number | undefined>
}

/** A project with a version of two objects, and metrics. */
async function measured(t: TestContext): Promise<Measured> {
  const backend = memoryBackend()
  const events: ServiceEvent[] = []
  const fixture = automated(t, {
    backend,
    deletionGraceMs: 2 * EPOCH_MS,
    sweepIntervalMs: 5,
    service: { name: 'one', onEvent: (event) => void events.push(event) },
  })
  const registry = new Registry()
  createMetrics({ registry, service: fixture.service })
  const ids = await withVersion(fixture)
  const counter = new EpochCounter(asGuarded(backend).records, REAL_ENVIRONMENT)
  const { project } = createClient({
    url: 'http://in.process',
    token: undefined,
    retry: false,
    fetch: (url, init) => fixture.service.fetch(new Request(url, init)),
  })
  return {
    ...fixture,
    ...ids,
    project: project('p'),
    pass: async (epochs) => {
      for (let i = 0; i < epochs; i++) await counter.advance()
    },
    of: <T extends ServiceEvent['type']>(type: T) =>
      events.filter((event): event is Extract<ServiceEvent, { type: T }> => event.type === type),
    counted: (name, labels) => valueOf(registry, `stowage_${name}`, labels),
  }
}

test('counters of collection have what was condemned, restored and freed', async (t) => {
  const { service, project, pass, counted } = await measured(t)
  const zombies = [{ id: 'zombie', children: [{ referencedId: 'bone' }] }, { id: 'bone' }]
  const jsonBytes = zombies.map((one) => JSON.stringify(one)).join('').length
  await uploadObjects(service, 'p', zombies)
  const values = async (): Promise<unknown> =>
    Promise.all(
      ['collected_objects_total', 'collected_json_bytes_total'].flatMap((name) =>
        ['condemned', 'restored', 'freed'].map((step) => counted(name, { step })),
      ),
    )
  await pass(2)
  await project.upkeep.collect({ ...GRACE, dryRun: true })
  assert.deepEqual(await values(), Array.from({ length: 6 }), 'a dry run counts nothing')
  await project.upkeep.collect(GRACE)
  assert.deepEqual(await values(), [2, 0, 0, jsonBytes, 0, 0])
  await project.upkeep.restoreCollected()
  assert.deepEqual(await values(), [2, 2, 0, jsonBytes, jsonBytes, 0])
  await pass(2)
  await project.upkeep.collect(GRACE)
  await pass(2)
  await project.upkeep.collect(GRACE)
  assert.deepEqual(await values(), [4, 2, 2, 2 * jsonBytes, jsonBytes, jsonBytes])
})

test('counters of compaction have its merges, and by how much packs and bytes became fewer', async (t) => {
  const { service, project, counted, of } = await measured(t)
  for (let i = 0; i < 5; i++) await uploadObjects(service, 'p', [{ id: `object-${i}`, text: 'x'.repeat(1_000) }])
  const report = await project.upkeep.compact({ all: true })
  assert.deepEqual([report.merges, report.packsBefore, report.packsAfter], [1, 6, 1])
  assert.ok(report.storedBytesAfter < report.storedBytesBefore)
  const [{ durationMs, ...event }, ...others] = of('compaction')
  const { merges, packsBefore, packsAfter, storedBytesBefore, storedBytesAfter } = report
  const amounts = { merges, packsBefore, packsAfter, storedBytesBefore, storedBytesAfter }
  assert.deepEqual(event, { type: 'compaction', service: 'one', projectId: 'p', ...amounts })
  assert.ok(durationMs > 0 && others.length === 0)
  const values = async (): Promise<unknown> =>
    Promise.all(['pack_merges_total', 'replaced_packs_total', 'compacted_bytes_total'].map((name) => counted(name)))
  assert.deepEqual(await values(), [1, 5, storedBytesBefore - storedBytesAfter])
  await project.upkeep.compact({ all: true })
  assert.deepEqual(await values(), [1, 5, storedBytesBefore - storedBytesAfter], 'nothing was merged')
  assert.equal(of('compaction').length, 1)
})

test('deletions are told and counted by kind and action, each once', async (t) => {
  const { service, extension, modelId, versionId, pass, of, counted } = await measured(t)
  const { models, versions } = extension.project('p')
  await versions.delete(modelId, versionId)
  await versions.delete(modelId, versionId)
  await versions.restore(modelId, versionId)
  await versions.change(modelId, versionId, { kept: true })
  const second = await versions.create(modelId, { rootObjectId: 'root', message: 'second' })
  const third = await versions.create(modelId, { rootObjectId: 'root', message: 'third' })
  await models.prune(modelId, { retention: { keepLastCount: 1 }, dryRun: true })
  await models.prune(modelId, { retention: { keepLastCount: 1 } })
  const other = await models.create({ name: 'Garden' })
  await models.delete(other.id)
  await models.restore(other.id)
  await models.delete(other.id)
  const expected = [
    ['version', 'deleted', versionId],
    ['version', 'restored', versionId],
    ['version', 'expired', second.id],
    ['model', 'deleted', other.id],
    ['model', 'restored', other.id],
    ['model', 'deleted', other.id],
  ]
  const told = (): readonly unknown[] => of('deletion').map(({ kind, action, id }) => [kind, action, id])
  assert.deepEqual(told(), expected)
  assert.deepEqual(of('deletion')[0], {
    type: 'deletion',
    service: 'one',
    projectId: 'p',
    kind: 'version',
    action: 'deleted',
    id: versionId,
  })
  await pass(4)
  await eventually(() => told().length === expected.length + 2, 'both are removed for good')
  const removed = told().slice(expected.length) as string[][]
  assert.deepEqual(
    removed.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    [
      ['model', 'removed', other.id],
      ['version', 'removed', second.id],
    ],
  )
  assert.equal((await versions.get(modelId, third.id)).deletedAt, null)
  await service.project('p').remove()
  assert.deepEqual(of('deletion').at(-1), {
    type: 'deletion',
    service: 'one',
    projectId: 'p',
    kind: 'project',
    action: 'deleted',
  })
  for (const [value, kind, action] of [
    [1, 'version', 'deleted'],
    [1, 'version', 'restored'],
    [1, 'version', 'expired'],
    [1, 'version', 'removed'],
    [2, 'model', 'deleted'],
    [1, 'model', 'restored'],
    [1, 'model', 'removed'],
    [1, 'project', 'deleted'],
  ] as const)
    assert.equal(await counted('deletions_total', { kind, action }), value, `${kind} ${action}`)
})

test('pins are told and counted when they are added and removed', async (t) => {
  const { project, of, counted } = await measured(t)
  const pin = await project.pins.add({ rootObjectId: 'root', name: 'Permit' })
  const second = await project.pins.add({ rootObjectId: 'leaf' })
  await project.pins.remove(pin.id)
  await assert.rejects(project.pins.remove(pin.id), { code: 'not_found' })
  await assert.rejects(project.pins.add({ rootObjectId: 'nobody' }), { code: 'objects_missing' })
  const ofPin = { type: 'pin', service: 'one', projectId: 'p' } as const
  assert.deepEqual(of('pin'), [
    { ...ofPin, action: 'added', id: pin.id },
    { ...ofPin, action: 'added', id: second.id },
    { ...ofPin, action: 'removed', id: pin.id },
  ])
  assert.equal(await counted('pin_changes_total', { action: 'added' }), 2)
  assert.equal(await counted('pin_changes_total', { action: 'removed' }), 1)
})
