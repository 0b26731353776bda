import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { MB } from '../../src/limits.ts'
import { jsonUpload } from '../http/served.ts'
import { attackedServer, head, rawClient } from './attacked.ts'

const NAMELESS = 499_000
const ASSIGNED_IDS_MAX = 10_000

test('case 31: 25 uploads of half a million objects without an id, 1.5 KB each, fit in a heap of 512 MB', async (t) => {
  const server = await attackedServer(t, { heapMb: 512, memoryWaitMs: 120_000 })
  const body = gzipSync(`[${'{},'.repeat(NAMELESS - 1)}{}]`)
  const before = await server.peakBytes()
  const summaries = await Promise.all(
    Array.from({ length: 25 }, async () => {
      const answer = await fetch(`${server.url}/objects/p`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/gzip' },
        body,
      })
      assert.equal(answer.status, 200)
      return (await answer.json()) as { objects: number; assigned: unknown[]; assignedCount: number }
    }),
  )
  t.diagnostic(`${(((await server.peakBytes()) - before) / MB).toFixed(0)} MB more, ${body.length} bytes each`)
  for (const { objects, assigned, assignedCount } of summaries)
    assert.deepEqual([objects, assigned.length, assignedCount], [1, ASSIGNED_IDS_MAX, NAMELESS])
  server.assertAlive()
})

const SLOW_UPLOADS = 60
const SLOW_MS = 2_000
const ROUNDS = 3

test(`case 32: ${SLOW_UPLOADS} uploads of one byte every ${SLOW_MS / 1_000} s run beside honest ones`, async (t) => {
  const server = await attackedServer(t, { heapMb: 256 })
  const slow = await Promise.all(
    Array.from({ length: SLOW_UPLOADS }, async (_, n) => {
      const client = await rawClient(server.port, '127.0.0.2')
      const headers = { 'Content-Type': 'application/json', 'Content-Length': 1_000_000 }
      // Half of them have sent much before they become slow.
      const begun = n % 2 === 0 ? '[{"id":"' : `[${'{"id":"x"},'.repeat(60_000)}{"id":"`
      await client.write(head('POST', '/objects/p', 'attacker', headers))
      void client.write(begun)
      return client
    }),
  )
  const ticking = setInterval(() => slow.forEach(({ socket }) => socket.write('x')), SLOW_MS)
  t.after(() => clearInterval(ticking))
  await sleep(SLOW_MS)
  for (let round = 0; round < ROUNDS; round++) {
    const objects = Array.from({ length: 20_000 }, (_, n) => ({ id: `honest-${round}-${n}`, text: 'x'.repeat(100) }))
    const upload = jsonUpload(objects)
    const statuses = await Promise.all(
      Array.from({ length: 8 }, () => {
        return statusAfterRetries(() =>
          fetch(`${server.url}/objects/p`, {
            ...upload,
            headers: { 'Content-Type': 'application/json', Authorization: 'Bearer honest' },
          }),
        )
      }),
    )
    assert.deepEqual(
      statuses,
      Array.from({ length: 8 }, () => 200),
    )
  }
  t.diagnostic(`${slow.filter(({ socket }) => socket.destroyed).length} of the slow ones are gone`)
  for (const { socket } of slow) socket.destroy()
  server.assertAlive()
})

/** The status of an honest client that tries again when the server says so, at most three times. */
async function statusAfterRetries(send: () => Promise<Response>): Promise<number> {
  for (let retries = 0; ; retries++) {
    const answer = await send()
    await answer.text()
    if (answer.status !== 503 || retries === 3) return answer.status
    await sleep(Number(answer.headers.get('retry-after')) * 1_000)
  }
}
