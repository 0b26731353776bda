import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { keeperOf } from '../../src/automation-server/domain/retention.ts'
import { TimeByHand } from '../store/time.ts'
import { eventually } from '../support/patience.ts'
import { automated, type Fixture, uploadObjects } from './support.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const START_MS = Date.parse('2026-11-01T00:30:00.000Z')

interface Aged extends Fixture {
  readonly modelId: string
  /** Two for each of ten days, the oldest first: at half past midnight and at noon. */
  readonly versionIds: readonly string[]
  readonly clock: { nowMs: number }
  readonly time: TimeByHand
}

async function aged(t: TestContext, sweepIntervalMs = HOUR_MS): Promise<Aged> {
  const clock = { nowMs: START_MS }
  const time = new TimeByHand()
  const { environment } = time
  const fixture = automated(t, { sweepIntervalMs, service: { environment, clock: { now: () => clock.nowMs } } })
  await uploadObjects(fixture.service, 'p', [{ id: 'root' }, { id: 'pinned' }])
  const { models, versions } = fixture.extension.project('p')
  const { id: modelId } = await models.create({ name: 'House' })
  const versionIds: string[] = []
  for (let day = 0; day < 10; day++) {
    for (const afterMs of [0, 11.5 * HOUR_MS]) {
      clock.nowMs = START_MS + day * DAY_MS + afterMs
      const rootObjectId = versionIds.length === 2 ? 'pinned' : 'root'
      versionIds.push((await versions.create(modelId, { rootObjectId, message: `day ${day}` })).id)
    }
  }
  return { ...fixture, modelId, versionIds, clock, time }
}

test('a retention rule keeps a version if one of its members does, and always keeps the newest', () => {
  const nowMs = START_MS + 9 * DAY_MS
  const times = Array.from({ length: 20 }, (_, i) => new Date(nowMs - i * 12 * HOUR_MS).toISOString())
  const kept = (rule: Parameters<typeof keeperOf>[0]): number[] => {
    const keeps = keeperOf(rule, nowMs)
    return times.flatMap((createdAt, i) => (keeps({ createdAt }) ? [i] : []))
  }
  assert.deepEqual(kept({ keepLastCount: 3 }), [0, 1, 2])
  assert.deepEqual(kept({ keepAllDays: 1 }), [0, 1])
  assert.deepEqual(kept({ keepDailyDays: 3 }), [0, 1, 3, 5])
  assert.deepEqual(kept({ keepLastCount: 2, keepDailyDays: 2 }), [0, 1, 3])
  assert.deepEqual(kept({ keepDailyDays: 1, keepAllDays: 1 }), [0, 1])
})

test('a dry run lists what the real one deletes, and pinned and kept versions stay', async (t) => {
  const { ask, extension, modelId, versionIds } = await aged(t)
  const { models, versions } = extension.project('p')
  await versions.change(modelId, versionIds[0], { kept: true })
  assert.equal((await ask('POST', 'p/pins', { rootObjectId: 'pinned' })).status, 201)
  assert.equal((await ask('POST', `p/models/${modelId}/prune`)).status, 409, 'there is no rule yet')
  assert.equal((await ask('PATCH', `p/models/${modelId}`, { retention: {} })).status, 400)
  assert.equal((await ask('PATCH', `p/models/${modelId}`, { retention: { keepLastCount: 2 } })).status, 200)
  const dry = await models.prune(modelId, { dryRun: true })
  assert.equal((await models.get(modelId)).versionCount, 20)
  const expected = versionIds.filter((_, i) => i !== 0 && i !== 2 && i < 18).toReversed()
  assert.deepEqual(
    dry.versions.map(({ id }) => id),
    expected,
  )
  const real = await models.prune(modelId)
  assert.deepEqual(
    real.versions.map(({ id }) => id),
    expected,
  )
  assert.deepEqual((await models.get(modelId)).versionCount, 4)
  assert.deepEqual((await models.prune(modelId)).versions, [])
  const restored = await versions.restore(modelId, versionIds[5])
  assert.equal(restored.kept, true, 'the rule would delete it again')
  assert.deepEqual((await models.prune(modelId)).versions, [])
})

test('the upkeep applies retention rules once a day', async (t) => {
  const { extension, modelId, clock, time } = await aged(t, 5)
  const { models } = extension.project('p')
  await models.change(modelId, { retention: { keepDailyDays: 3 } })
  clock.nowMs += DAY_MS
  time.pass(DAY_MS)
  await eventually(async () => (await models.get(modelId)).versionCount === 2, 'the last of each day stays')
  await models.change(modelId, { retention: null })
  clock.nowMs += 10 * DAY_MS
  time.pass(10 * DAY_MS)
  assert.equal((await models.get(modelId)).versionCount, 2)
})
