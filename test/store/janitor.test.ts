import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { keyBounds } from '../../src/store/records/keys.ts'
import { decodePlanRecord } from '../../src/store/records/records.ts'
import { Lease, LEASE_MS } from '../../src/store/upkeep/lease.ts'
import { eventually, turns } from '../support/patience.ts'
import { hooked } from './failures.ts'
import { assertRight, filled, GRAPH } from './planned.ts'
import { assertSound, download, type Opened, openStore } from './support.ts'
import { TimeByHand } from './time.ts'

interface Server {
  readonly lease: Lease
  readonly clock: { nowMs: number }
}

function servers(count: number, { records } = asGuarded(memoryBackend())): readonly Server[] {
  return Array.from({ length: count }, (_, at) => {
    // Monotonic clocks begin anywhere.
    const clock = { nowMs: at * 1_000_000 }
    return { clock, lease: new Lease(records, 'work', { ...REAL_ENVIRONMENT, monotonicMs: () => clock.nowMs }) }
  })
}

test('a server holds the lease while it renews it, and another takes it once it expires', async () => {
  const [first, second] = servers(2)
  await first.lease.look()
  assert.ok(first.lease.fence !== undefined)
  for (let count = 0; count < 5; count++) {
    await second.lease.look()
    assert.equal(second.lease.fence, undefined)
    for (const { clock } of [first, second]) clock.nowMs += LEASE_MS - 1
    await first.lease.look()
    assert.ok(first.lease.fence !== undefined)
  }
  await second.lease.look()
  second.clock.nowMs += LEASE_MS
  await second.lease.look()
  assert.ok(second.lease.fence !== undefined)
  await first.lease.look()
  assert.equal(first.lease.fence, undefined)
})

test('commits of a server that was paused beyond its lease are refused, even if its clock was paused too', async () => {
  const backend = asGuarded(memoryBackend())
  const [first, second] = servers(2, backend)
  await first.lease.look()
  const { fence } = first.lease
  assert.ok(fence !== undefined)
  await second.lease.look()
  second.clock.nowMs += LEASE_MS
  await second.lease.look()
  assert.ok(second.lease.fence !== undefined)
  assert.ok(first.lease.fence !== undefined, 'it does not know yet')
  const key = Buffer.from('x')
  const commit = (expect: typeof fence): Promise<boolean> =>
    backend.records.commit({ put: [{ key, value: key }], expect: [expect] }).then(({ ok }) => ok)
  assert.equal(await commit(fence), false)
  assert.equal(await commit(second.lease.fence), true)
  second.clock.nowMs += LEASE_MS
  assert.equal(second.lease.fence, undefined, 'a holder that could not renew it stops by itself')
})

test('a lease is free as soon as its holder releases it, and one of many servers takes it', async () => {
  const [first, ...others] = servers(6)
  await first.lease.look()
  await first.lease.release()
  assert.equal(first.lease.fence, undefined)
  await Promise.all(others.map(({ lease }) => lease.look()))
  assert.equal(others.filter(({ lease }) => lease.fence !== undefined).length, 1)
})

test('a holder keeps the lease if the answer to its commit is lost', async () => {
  let isLost = true
  const inner = asGuarded(memoryBackend())
  const backend = hooked(inner, async (call, _detail, work) => {
    const result = await work()
    if (call === 'commit' && isLost) throw new Error('the answer is lost')
    return result
  })
  const [holder] = servers(1, backend)
  const [other] = servers(1, inner)
  await assert.rejects(holder.lease.look())
  assert.equal(holder.lease.fence, undefined)
  isLost = false
  await other.lease.look()
  assert.equal(other.lease.fence, undefined)
  await holder.lease.look()
  assert.ok(holder.lease.fence !== undefined)
})

/** Bytes of the plans that records name. */
async function storedPlanBytes(backend: StorageBackend): Promise<number> {
  let bytes = 0
  for await (const entries of backend.records.range(keyBounds('plan')))
    for (const { key, value } of entries) bytes += decodePlanRecord(key, value).planBytes
  return bytes
}

test('the plans of all servers share one budget, even after the server that enforces it is gone', async () => {
  const backend = memoryBackend()
  await (await filled(backend)).store.close()
  const roots = GRAPH.slice(0, 24).map(({ id }) => id)
  const measured = await openStore(backend)
  const planBytes: number[] = []
  for (const root of roots) {
    const before = await storedPlanBytes(backend)
    await download(measured.store, 'demo', root)
    await measured.store.idle()
    planBytes.push((await storedPlanBytes(backend)) - before)
  }
  await measured.store.close()
  const total = planBytes.reduce((sum, bytes) => sum + bytes, 0)
  const stored = roots.filter((_, at) => planBytes[at] > 0)
  const planBytesMax = total / 3
  const isDead = { now: false }
  const dying = hooked(backend, (_call, _detail, work) => (isDead.now ? new Promise<never>(() => undefined) : work()))
  const times = [new TimeByHand(), new TimeByHand()]
  // Each has room for its own half, and not for both.
  const open = async (over: StorageBackend, { environment }: TimeByHand): Promise<Opened> =>
    openStore(over, { planBytesMax, environment })
  const janitor = await open(dying, times[0])
  const other = await open(backend, times[1])
  const use = async (server: Opened, some: readonly string[]): Promise<void> => {
    for (const root of some) {
      await assertRight(server, root)
      await server.store.idle()
    }
  }
  await use(other, stored)
  await use(janitor, stored.slice(0, 2))
  await eventually(async () => {
    times[0].pass(60_000)
    await turns()
    return (await storedPlanBytes(backend)) <= planBytesMax
  }, 'the janitor has bounded what the other made')
  isDead.now = true
  await use(other, stored)
  await eventually(async () => {
    times[1].pass(60_000)
    await turns()
    return (await storedPlanBytes(backend)) <= planBytesMax
  }, 'another server bounds them')
  assert.deepEqual(
    [janitor, other].flatMap(({ background }) => background),
    [],
  )
  await assertSound(backend)
  await other.store.close()
})
