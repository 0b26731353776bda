import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../src/client/index.ts'
import { startBalancer, startCluster } from './cluster.ts'

/** The page waits for 75 s; the rest is as there. */
const READ_TIMEOUT_SECONDS = 2
const CALLS = 30

test('behind nginx, a server that hangs delays few requests and fails no client', async (t) => {
  const cluster = await startCluster(t, 3)
  const { servers, token } = cluster
  const url = await startBalancer(t, cluster, { readTimeoutSeconds: READ_TIMEOUT_SECONDS })
  const project = createClient({ url, token }).project('house')
  await project.upload([{ id: 'door', width: 90 }])
  servers[0].running.child.kill('SIGSTOP')
  const waitedMs: number[] = []
  try {
    for (let call = 0; call < CALLS; call++) {
      const beganAtMs = performance.now()
      if (call % 3 === 0) await project.upload([{ id: `wall ${call}` }], { sendAll: true })
      else assert.deepEqual(await project.get('door'), { id: 'door', width: 90 })
      waitedMs.push(performance.now() - beganAtMs)
    }
  } finally {
    servers[0].running.child.kill('SIGCONT')
  }
  const delayed = waitedMs.filter((ms) => ms >= 1_000 * READ_TIMEOUT_SECONDS)
  t.diagnostic(`${delayed.length} of ${CALLS} calls waited: ${delayed.map(Math.round).join(', ')} ms`)
  // It is tried again with one request every ten seconds.
  assert.ok(delayed.length >= 1 && delayed.length <= 4)
  const { held } = await project.has(waitedMs.map((_, call) => `wall ${call}`))
  assert.equal(held.size, CALLS / 3)
})
