import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '../../src/client/index.ts'
import { startBalancer, startCluster } from './cluster.ts'

const SERVERS = 3
/** The page waits for 75 s; the rest is as there. */
const READ_TIMEOUT_SECONDS = 2
/** Longer than `fail_timeout`, after which nginx tries the server again. */
const READING_MS = 12_000
const READ_EVERY_MS = 100

test('behind nginx, a server that hangs delays few requests and fails no client', async (t) => {
  const cluster = await startCluster(t, SERVERS)
  const { servers, token } = cluster
  const url = await startBalancer(t, cluster, { readTimeoutSeconds: READ_TIMEOUT_SECONDS })
  const project = createClient({ url, token }).project('house')
  await project.upload([{ id: 'door', width: 90 }])
  const delayed: string[] = []
  const timed = async (what: string, call: () => Promise<unknown>): Promise<void> => {
    const beganAtMs = performance.now()
    await call()
    if (performance.now() - beganAtMs >= 1_000 * READ_TIMEOUT_SECONDS) delayed.push(what)
  }
  const walls = Array.from({ length: SERVERS }, (_, at) => ({ id: `wall ${at}` }))
  servers[0].running.child.kill('SIGSTOP')
  try {
    // Each of so many requests goes to another server.
    for (const wall of walls) await timed('upload', () => project.upload([wall], { sendAll: true }))
    for (const endsAtMs = performance.now() + READING_MS; performance.now() < endsAtMs; await sleep(READ_EVERY_MS))
      await timed('read', async () => assert.deepEqual(await project.get('door'), { id: 'door', width: 90 }))
  } finally {
    servers[0].running.child.kill('SIGCONT')
  }
  assert.deepEqual(delayed, ['upload', 'read'])
  assert.deepEqual((await project.has(walls.map(({ id }) => id))).missing, [])
})
