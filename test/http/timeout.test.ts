import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Timeout } from '../../src/http/timeout.ts'
import { eventually } from '../support/patience.ts'

const TIMEOUT_MS = 400

/** The event loop stands still, as when the process or its machine is held up. */
function holdUp(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs;);
}

test('a timeout fires when its time has passed, and not before', async () => {
  let lateAtMs: number | undefined
  const timeout = new Timeout(TIMEOUT_MS, () => (lateAtMs = performance.now()))
  const beganAtMs = performance.now()
  timeout.start()
  await eventually(() => lateAtMs !== undefined, 'it fires')
  assert.ok(Number(lateAtMs) - beganAtMs >= TIMEOUT_MS - 5)
})

test('a timeout that begins again, or is cancelled, does not fire', async () => {
  let isLate = false
  const timeout = new Timeout(TIMEOUT_MS, () => (isLate = true))
  for (let i = 0; i < 8; i++) {
    timeout.start()
    await delay(TIMEOUT_MS / 4)
  }
  timeout.cancel()
  await delay(TIMEOUT_MS * 2)
  assert.equal(isLate, false)
})

test('what comes soon after the process was held up is not late', async () => {
  let isLate = false
  const timeout = new Timeout(TIMEOUT_MS, () => (isLate = true))
  timeout.start()
  await delay(1)
  holdUp(2 * TIMEOUT_MS)
  await delay(TIMEOUT_MS / 4)
  timeout.cancel()
  assert.equal(isLate, false)
})
