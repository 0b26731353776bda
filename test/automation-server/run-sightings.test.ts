import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRecord } from '../../src/automation-server/domain/run-record.ts'
import { type Overdue, RunSightings } from '../../src/automation-server/runner/run-sightings.ts'

const EPOCH_MS = 600_000
const times = { leaseMs: 60_000, runMsMax: 3_600_000, pendingMsMax: 7_200_000 }

type Seen = Pick<RunRecord, 'status' | 'attempt' | 'leaseBeat' | 'createdEpoch'>

/** One server's look at one run, at a time of its own. */
function looking(): (atMs: number, changes: Partial<Seen>, epoch?: number) => Overdue | undefined {
  let nowMs = 0
  const environment = { monotonicMs: () => nowMs }
  const sightings = new RunSightings({ environment, epochs: { epochMs: EPOCH_MS }, times })
  return (atMs, changes, epoch) => {
    nowMs = atMs
    const seen: Seen = { status: 'running', attempt: 1, leaseBeat: 1, createdEpoch: 0, ...changes }
    const run = { id: 'run', ...seen } as RunRecord
    const expectation = { key: new Uint8Array(1), value: undefined }
    return sightings.overdue(run, epoch === undefined ? undefined : { number: epoch, expectation })
  }
}

test('a lease is over when its number stood still for its length, since this server first saw it', () => {
  const look = looking()
  assert.equal(look(1_000_000, { leaseBeat: 7 }), undefined)
  assert.equal(look(1_059_999, { leaseBeat: 7 }), undefined)
  assert.equal(look(1_060_000, { leaseBeat: 7 }), 'lease')
  assert.equal(look(1_060_001, { leaseBeat: 8 }), undefined, 'its holder lives')
  assert.equal(look(1_120_001, { leaseBeat: 8 }), 'lease')
  assert.equal(look(1_120_002, { leaseBeat: 8, attempt: 2 }), undefined, 'another attempt')
})

test('a run that is renewed all the time is over when its attempt has lasted for its length', () => {
  const look = looking()
  for (let atMs = 0; atMs < times.runMsMax; atMs += 30_000) assert.equal(look(atMs, { leaseBeat: atMs }), undefined)
  assert.equal(look(times.runMsMax, { leaseBeat: 1 }), 'deadline')
  assert.equal(look(times.runMsMax, { leaseBeat: 1, status: 'succeeded' }), undefined)
})

test('a run that waits is too old by the time that this server saw, or by the epochs that others saw too', () => {
  const waiting = { status: 'pending', attempt: 0, leaseBeat: null, createdEpoch: 100 } as const
  const look = looking()
  assert.equal(look(0, waiting), undefined)
  assert.equal(look(times.pendingMsMax - 1, waiting), undefined)
  assert.equal(look(times.pendingMsMax, waiting), 'age')
  const anew = looking()
  assert.equal(anew(0, waiting, 112), undefined, 'it may have come at the end of its epoch')
  assert.equal(anew(0, waiting, 113), 'age')
})
