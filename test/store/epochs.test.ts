import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { EPOCH_MS, EpochCounter } from '../../src/store/upkeep/epochs.ts'

function counters(count: number): { readonly clocks: { nowMs: number }[]; readonly servers: EpochCounter[] } {
  const { records } = asGuarded(memoryBackend())
  const clocks = Array.from({ length: count }, () => ({ nowMs: 0 }))
  return { clocks, servers: clocks.map((clock) => new EpochCounter(records, { monotonicMs: () => clock.nowMs })) }
}

test('an epoch ends after one server has seen its whole length', async () => {
  const { clocks, servers } = counters(1)
  const [server] = servers
  await server.advanceWhenDue()
  clocks[0].nowMs = EPOCH_MS - 1
  await server.advanceWhenDue()
  assert.equal((await server.current()).number, 0)
  clocks[0].nowMs = EPOCH_MS
  await server.advanceWhenDue()
  assert.equal((await server.current()).number, 1)
})

test('servers whose clocks differ by years advance one epoch together', async () => {
  const { clocks, servers } = counters(2)
  clocks[1].nowMs = 365 * 86_400_000
  for (const server of servers) await server.advanceWhenDue()
  for (const clock of clocks) clock.nowMs += EPOCH_MS
  for (const server of servers) await server.advanceWhenDue()
  assert.equal((await servers[0].current()).number, 1)
  for (const server of servers) await server.advanceWhenDue()
  assert.equal((await servers[1].current()).number, 1, 'the second server begins to wait for the new epoch')
})

test('a clock that jumps ahead ends one epoch', async () => {
  const { clocks, servers } = counters(1)
  const [server] = servers
  await server.advanceWhenDue()
  clocks[0].nowMs = 1_000 * EPOCH_MS
  for (let i = 0; i < 10; i++) await server.advanceWhenDue()
  assert.equal((await server.current()).number, 1)
})

test('a commit that expects an epoch fails after the next one begins', async () => {
  const { records } = asGuarded(memoryBackend())
  const server = new EpochCounter(records, REAL_ENVIRONMENT)
  const { expectation } = await server.current()
  await server.advance()
  const key = Buffer.from('x')
  assert.deepEqual(
    await records.commit({ put: [{ key, value: key }], expect: [expectation] }).then(({ ok }) => ok),
    false,
  )
})
