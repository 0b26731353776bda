import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LeaseOptions, MemoryBudget, type MemoryLease, type Party } from '../../src/memory/memory-budget.ts'
import { PATIENCE_MS, turns } from '../support/patience.ts'

const live = (): AbortSignal => new AbortController().signal
const patient = (): { signal: AbortSignal; waitMs: number } => ({ signal: live(), waitMs: PATIENCE_MS })

interface Acquired extends Pick<MemoryLease, 'release'> {
  readonly resize: (bytes: number) => Promise<void>
}

async function acquire(budget: MemoryBudget, bytes: number, options: LeaseOptions): Promise<Acquired> {
  const lease = budget.open(options)
  const all = lease.part()
  await all.set(bytes)
  return { resize: async (wanted) => all.set(wanted), release: () => lease.release() }
}

/** Whether the promise is still open after everything that can happen at once has happened. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isOpen = true
  promise.then(
    () => (isOpen = false),
    () => (isOpen = false),
  )
  await turns()
  return isOpen
}

test('free memory is granted at once and released once', async () => {
  const budget = new MemoryBudget(1_000)
  const lease = await acquire(budget, 300, patient())
  assert.equal(budget.heldBytes, 300)
  await lease.resize(900)
  assert.equal(budget.heldBytes, 900)
  await lease.resize(100)
  assert.equal(budget.heldBytes, 100)
  lease.release()
  lease.release()
  assert.equal(budget.heldBytes, 0)
})

test('a budget is a positive integer', () => {
  for (const bytes of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => new MemoryBudget(bytes), RangeError)
})

test('a single caller may lease the whole budget', async () => {
  const budget = new MemoryBudget(1_000)
  const lease = await acquire(budget, 1_000, patient())
  lease.release()
  assert.equal(budget.heldBytes, 0)
})

test('a request larger than the budget is refused at once', async () => {
  const budget = new MemoryBudget(1_000)
  await assert.rejects(acquire(budget, 1_001, patient()), { code: 'memory_limit_exceeded', statusCode: 413 })
  const lease = await acquire(budget, 10, patient())
  await assert.rejects(lease.resize(1_001), { code: 'memory_limit_exceeded' })
  assert.equal(budget.heldBytes, 10)
})

test('callers queue in order when the budget is spent', async () => {
  const budget = new MemoryBudget(1_000)
  const first = await acquire(budget, 700, patient())
  const order: string[] = []
  const second = acquire(budget, 600, patient()).then((lease) => (order.push('second'), lease))
  const third = acquire(budget, 10, patient()).then((lease) => (order.push('third'), lease))
  assert.ok(await isPending(third), 'a small one does not overtake a large one')
  first.release()
  const leases = await Promise.all([second, third])
  assert.deepEqual(order, ['second', 'third'])
  assert.equal(budget.heldBytes, 610)
  for (const lease of leases) lease.release()
  assert.equal(budget.heldBytes, 0)
})

test('a caller that waits too long is refused and blocks nobody', async () => {
  const budget = new MemoryBudget(1_000)
  const lease = await acquire(budget, 500, patient())
  const large = acquire(budget, 600, { signal: live(), waitMs: 20 })
  const small = acquire(budget, 100, patient())
  await assert.rejects(large, {
    code: 'overloaded',
    statusCode: 503,
    isRetryable: true,
    headers: { 'Retry-After': '2' },
  })
  ;(await small).release()
  lease.release()
  assert.equal(budget.heldBytes, 0)
})

test('an aborted caller leaves the queue', async () => {
  const budget = new MemoryBudget(1_000)
  const lease = await acquire(budget, 500, patient())
  const controller = new AbortController()
  const waiting = acquire(budget, 600, { signal: controller.signal, waitMs: PATIENCE_MS })
  const behind = acquire(budget, 100, patient())
  assert.ok(await isPending(behind))
  controller.abort(new Error('gone'))
  await assert.rejects(waiting, /gone/)
  ;(await behind).release()
  await assert.rejects(acquire(budget, 1, { signal: controller.signal, waitMs: PATIENCE_MS }), /gone/)
  lease.release()
  assert.equal(budget.heldBytes, 0)
})

test('leases in use may grow into room that new callers cannot take', async () => {
  const budget = new MemoryBudget(1_000)
  const inside = await acquire(budget, 700, patient())
  const newcomer = acquire(budget, 200, patient())
  assert.ok(await isPending(newcomer))
  await inside.resize(900)
  await inside.resize(500)
  await newcomer
  assert.equal(budget.heldBytes, 700)
})

test('a growing lease is served before new callers', async () => {
  const budget = new MemoryBudget(1_000)
  const a = await acquire(budget, 300, patient())
  const b = await acquire(budget, 300, patient())
  const growing = a.resize(900)
  const newcomer = acquire(budget, 100, patient())
  assert.ok(await isPending(growing))
  b.release()
  await growing
  assert.equal(budget.heldBytes, 900)
  assert.ok(await isPending(newcomer))
  a.release()
  ;(await newcomer).release()
  assert.equal(budget.heldBytes, 0)
})

test('if every lease waits to grow, the youngest is refused and the others finish', async () => {
  const budget = new MemoryBudget(1_000)
  const leases = []
  for (let i = 0; i < 5; i++) leases.push(await acquire(budget, 150, patient()))
  const outcomes = await Promise.all(
    leases.map(async (lease) => {
      try {
        await lease.resize(450)
        await turns(1)
        return 'done'
      } catch (error) {
        return (error as { code: string }).code
      } finally {
        lease.release()
      }
    }),
  )
  assert.equal(outcomes[0], 'done')
  assert.equal(outcomes.at(-1), 'overloaded')
  assert.ok(outcomes.filter((outcome) => outcome === 'done').length >= 2, outcomes.join())
  assert.equal(budget.heldBytes, 0)
})

test('a release while waiting to grow ends the wait and leaks nothing', async () => {
  const budget = new MemoryBudget(1_000)
  const a = await acquire(budget, 400, patient())
  const b = await acquire(budget, 300, patient())
  const growing = a.resize(900)
  a.release()
  await assert.rejects(growing, { code: 'overloaded' })
  b.release()
  assert.equal(budget.heldBytes, 0)
})

test('growing can be aborted', async () => {
  const budget = new MemoryBudget(1_000)
  const controller = new AbortController()
  const a = await acquire(budget, 400, { signal: controller.signal, waitMs: PATIENCE_MS })
  const b = await acquire(budget, 300, patient())
  const growing = a.resize(900)
  controller.abort(new Error('gone'))
  await assert.rejects(growing, /gone/)
  assert.equal(budget.heldBytes, 700)
  a.release()
  b.release()
  assert.equal(budget.heldBytes, 0)
})

const partyOf = (principal: string, projectId = 'p'): Party => ({ principal, projectId })

test('each party queues alone, and the party with the smaller share is served first', async () => {
  const budget = new MemoryBudget(1_000)
  const large = await acquire(budget, 600, { ...patient(), party: partyOf('a') })
  const waiting = acquire(budget, 400, { ...patient(), party: partyOf('a') })
  const other = await acquire(budget, 100, { ...patient(), party: partyOf('b') })
  assert.ok(await isPending(waiting))
  large.release()
  ;(await waiting).release()
  other.release()
  assert.equal(budget.heldBytes, 0)
})

for (const [name, hog, other] of [
  ['a principal', partyOf('hog', 'p'), partyOf('other', 'p')],
  ['a project of one principal', partyOf('host', 'p'), partyOf('host', 'q')],
] as const) {
  test(`the ${name} with most memory gives its youngest lease to one with less`, async () => {
    const budget = new MemoryBudget(1_000, { patienceMs: 5 })
    const revoked: number[] = []
    const leases: MemoryLease[] = []
    for (let n = 0; n < 3; n++) {
      const lease = budget.open({
        ...patient(),
        party: hog,
        revoke: (reason) => {
          assert.deepEqual([reason.code, reason.statusCode], ['overloaded', 503])
          revoked.push(n)
          lease.release()
        },
      })
      leases.push(lease)
      await lease.hold(250)
    }
    const honest = await acquire(budget, 200, { ...patient(), party: other })
    assert.deepEqual(revoked, [2])
    honest.release()
    for (const lease of leases) lease.release()
    assert.equal(budget.heldBytes, 0)
  })
}

test('no lease is revoked for its own party, or for a party that would hold more', async () => {
  const budget = new MemoryBudget(1_000, { patienceMs: 5 })
  const revoke = (): void => assert.fail('revoked')
  const first = budget.open({ ...patient(), party: partyOf('a'), revoke })
  await first.hold(500)
  for (const party of [partyOf('a'), partyOf('b')]) {
    await assert.rejects(acquire(budget, 501, { signal: live(), waitMs: 50, party }), { code: 'overloaded' })
  }
  first.release()
})

test('one lease at a time grows into the last quarter, so growing leases finish in turn', async () => {
  const budget = new MemoryBudget(1_000)
  const leases = []
  for (let i = 0; i < 7; i++) leases.push(await acquire(budget, 100, patient()))
  const growing = leases.map(async (lease) => {
    await lease.resize(250)
    await turns(1)
    lease.release()
  })
  await Promise.all(growing)
  assert.equal(budget.heldBytes, 0)
})

test('optional memory is granted only if it is free at once, and leaves a quarter to others', async () => {
  const budget = new MemoryBudget(1_000)
  const lease = budget.open(patient())
  assert.deepEqual([lease.tryHold(700), lease.tryHold(51), lease.tryHold(50)], [true, false, true])
  assert.deepEqual([lease.heldBytes, budget.heldBytes], [750, 750])
  const waiting = budget.open(patient())
  const growing = waiting.hold(800)
  assert.ok(await isPending(Promise.resolve(growing)))
  const late = budget.open(patient())
  assert.equal(late.tryHold(1), false, 'those who wait come first')
  lease.release()
  assert.equal(lease.tryHold(1), false)
  await growing
  waiting.release()
  assert.equal(budget.heldBytes, 0)
})

test('a lease that cannot be revoked is not chosen', async () => {
  const budget = new MemoryBudget(1_000, { patienceMs: 5 })
  const revoked: string[] = []
  const [revocable, fixed] = [
    budget.open({
      ...patient(),
      party: partyOf('hog'),
      revoke: () => (revoked.push('revocable'), revocable.release()),
    }),
    budget.open({ ...patient(), party: partyOf('hog') }),
  ]
  await revocable.hold(300)
  await fixed.hold(400)
  const honest = await acquire(budget, 200, { ...patient(), party: partyOf('other') })
  assert.deepEqual(revoked, ['revocable'])
  for (const lease of [honest, fixed]) lease.release()
  assert.equal(budget.heldBytes, 0)
})

/** Holds so much for a party until it is told to give it back. */
async function revocable(budget: MemoryBudget, bytes: number, options: Partial<LeaseOptions>): Promise<MemoryLease> {
  const lease = budget.open({ ...patient(), ...options, revoke: () => lease.release() })
  await lease.hold(bytes)
  return lease
}

test('upkeep gives way to a request that waits, even to one that holds more', async () => {
  const budget = new MemoryBudget(1_000, { patienceMs: 5 })
  const request = await revocable(budget, 400, { party: partyOf('a') })
  const upkeep = await revocable(budget, 300, { party: { ...partyOf('server'), isUpkeep: true } })
  await request.hold(400)
  assert.deepEqual([request.reservedBytes, upkeep.reservedBytes], [800, 0])
  request.release()
  assert.equal(budget.heldBytes, 0)
})

test('upkeep that waits takes nothing back from requests', async () => {
  const budget = new MemoryBudget(1_000, { patienceMs: 5 })
  const party = { ...partyOf('server'), isUpkeep: true }
  const request = await revocable(budget, 700, { party: partyOf('a') })
  const spare = await revocable(budget, 40, { party: partyOf('a'), isSpare: true })
  await assert.rejects(acquire(budget, 300, { signal: live(), waitMs: 50, party }), { code: 'overloaded' })
  assert.deepEqual([request.reservedBytes, spare.reservedBytes], [700, 40])
  for (const lease of [request, spare]) lease.release()
})

test('memory that can be done without goes back first, whoever holds it', async () => {
  const budget = new MemoryBudget(1_000, { patienceMs: 5 })
  const spare = await revocable(budget, 300, { party: partyOf('a'), isSpare: true })
  const larger = await revocable(budget, 400, { party: partyOf('b') })
  const waiting = await acquire(budget, 200, { ...patient(), party: partyOf('a') })
  assert.deepEqual([spare.reservedBytes, larger.reservedBytes], [0, 400])
  waiting.release()
  larger.release()
})

test('if all wait to grow, upkeep is refused before requests', async () => {
  const budget = new MemoryBudget(1_000)
  const upkeep = await acquire(budget, 200, { ...patient(), party: { ...partyOf('server'), isUpkeep: true } })
  const request = await acquire(budget, 500, { ...patient(), party: partyOf('a') })
  const growing = upkeep.resize(900)
  assert.ok(await isPending(growing))
  const grown = request.resize(900)
  await assert.rejects(growing, { code: 'overloaded' })
  upkeep.release()
  await grown
  request.release()
})
