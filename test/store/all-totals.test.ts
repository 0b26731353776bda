import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { ProjectTotals } from '../../src/object/graph-store.ts'
import type { RecordStore } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { headKey, totalsKey } from '../../src/store/records/keys.ts'
import { encodeHead, encodeTotals } from '../../src/store/records/records.ts'
import { AllTotals } from '../../src/store/usage/all-totals.ts'
import { never } from './support.ts'

interface Project {
  readonly id: string
  readonly totals?: ProjectTotals
  readonly removed?: boolean
  readonly damaged?: boolean
}

async function recordsOf(projects: readonly Project[]): Promise<RecordStore> {
  const { records } = asGuarded(memoryBackend())
  for (const { id, totals, removed = false, damaged = false } of projects) {
    const [head, key] = [headKey(id), totalsKey(id, 1)]
    await records.insertMany([
      { key: head, value: encodeHead(head, { generation: 1, sequence: 1, removed, layout: 0 }) },
      ...(totals === undefined ? [] : [{ key, value: damaged ? Buffer.from('x') : encodeTotals(key, totals) }]),
    ])
  }
  return records
}

/** The size of a project that is the larger the higher the number. */
function sized(number: number): ProjectTotals {
  return { objects: number, jsonBytes: 10 * number, storedBytes: 100 * number }
}

test('the 100 largest projects are listed one by one, the largest first, and the others as one sum', async () => {
  const projects = Array.from({ length: 350 }, (_, i) => ({ id: `p${i}`, totals: sized(((i * 11) % 350) + 1) }))
  const records = await recordsOf(projects)
  const totals = await new AllTotals({ records, environment: REAL_ENVIRONMENT, closing: never }).read()
  assert.equal(totals.projects, 350)
  assert.deepEqual(
    totals.largest.map(({ objects }) => objects),
    Array.from({ length: 100 }, (_, i) => 350 - i),
  )
  const [largest] = totals.largest
  assert.deepEqual(largest, { projectId: projects.find((one) => one.totals.objects === 350)?.id, ...sized(350) })
  assert.deepEqual(totals.others, sized((250 * 251) / 2))
  assert.equal(totals.uncountedProjects, 0)
})

test('removed projects are left out, and those without a legible record are counted separately', async () => {
  const records = await recordsOf([
    { id: 'whole', totals: sized(3) },
    { id: 'removed', totals: sized(5), removed: true },
    { id: 'lost' },
    { id: 'damaged', totals: sized(7), damaged: true },
  ])
  const totals = await new AllTotals({ records, environment: REAL_ENVIRONMENT, closing: never }).read()
  assert.deepEqual(totals, {
    projects: 1,
    largest: [{ projectId: 'whole', ...sized(3) }],
    others: sized(0),
    uncountedProjects: 2,
  })
})

/** Records whose ranges are counted and wait for a gate; a clock and timers that the test moves. */
async function gated(): Promise<{
  readonly totals: AllTotals
  readonly ranges: () => number
  readonly hand: { nowMs: number; gate: Promise<void>; fire: () => void }
}> {
  const inner = await recordsOf([{ id: 'p', totals: sized(1) }])
  const hand = { nowMs: 1_000, gate: Promise.resolve(), fire: (): void => undefined }
  let ranges = 0
  const records: RecordStore = {
    limits: inner.limits,
    getMany: (...call) => inner.getMany(...call),
    insertMany: (...call) => inner.insertMany(...call),
    commit: (...call) => inner.commit(...call),
    close: () => inner.close(),
    range: async function* (...call) {
      ranges++
      await hand.gate
      yield* inner.range(...call)
    },
  }
  const environment: Environment = {
    ...REAL_ENVIRONMENT,
    monotonicMs: () => hand.nowMs,
    setTimer: (_, act) => {
      hand.fire = act
      const timer = { cancel: () => undefined, unref: () => timer }
      return timer
    },
  }
  return { totals: new AllTotals({ records, environment, closing: never }), ranges: () => ranges, hand }
}

test('callers share a reading, which is repeated after 30 s or nine times its duration', async () => {
  const { totals, ranges, hand } = await gated()
  await Promise.all([totals.read(), totals.read(), totals.read()])
  hand.nowMs += 29_999
  await totals.read()
  assert.equal(ranges(), 1)
  hand.nowMs += 1
  hand.gate = Promise.resolve().then(() => void (hand.nowMs += 10_000))
  await totals.read()
  assert.equal(ranges(), 2)
  hand.nowMs += 89_999
  await totals.read()
  assert.equal(ranges(), 2, 'it took 10 s')
  hand.nowMs += 1
  await totals.read()
  assert.equal(ranges(), 3)
})

test('a caller waits at most 2 s, and then receives the previous reading if there is one', async () => {
  const { totals, ranges, hand } = await gated()
  let open = (): void => undefined
  hand.gate = new Promise((resolve) => (open = resolve))
  const early = totals.read()
  hand.fire()
  await assert.rejects(early, { code: 'overloaded' })
  open()
  const first = await totals.read()
  assert.equal(ranges(), 1, 'it continued')
  hand.nowMs += 30_000
  hand.gate = new Promise((resolve) => (open = resolve))
  const late = totals.read()
  hand.fire()
  assert.equal(await late, first)
  open()
  assert.notEqual(await totals.read(), first)
  assert.equal(ranges(), 2)
})

test('the next caller repeats a failed reading', async () => {
  const { totals, ranges, hand } = await gated()
  hand.gate = Promise.reject(new Error('the storage fails'))
  await assert.rejects(totals.read(), /the storage fails/)
  hand.gate = Promise.resolve()
  assert.equal((await totals.read()).projects, 1)
  assert.equal(ranges(), 2)
})
