import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { MB } from '../../src/limits.ts'
import { eventually } from '../support/patience.ts'
import { attackedServer, head, rawClient } from './attacked.ts'
import { listOf, warmed } from './warm.ts'

/* Case 30: lists of ids are leased from the budget before they are held. */

const HEAP_MB = 256
/**
 * What buffers hold when everything that nobody holds was collected: the 60 MB that requests may lease of the 96 MB,
 * and what is being read.
 */
const BUFFERS_BYTES_MAX = 64 * MB
/**
 * The same with what the engine has not collected yet: it lets up to 64 MB of buffers come together before it looks.
 */
const GROWTH_BYTES_MAX = 128 * MB
const CLIENTS = 60
const LIST_BYTES = 32 * MB - 1_024
const PIECE_BYTES = 262_144

test(`case 30: ${CLIENTS} clients withhold the last byte of lists of 32 MB`, async (t) => {
  const server = await attackedServer(t, { heapMb: HEAP_MB, memoryWaitMs: 3_000 })
  await warmed(server)
  const idle = await server.collected()
  const before = await server.peakBytes()
  const list = listOf(LIST_BYTES)
  const headers = { 'Content-Type': 'application/json', 'Content-Length': list.length }
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const client = await rawClient(server.port, '127.0.0.2')
      await client.write(head('POST', '/api/v2/projects/p/object-stream', 'attacker', headers))
      const answered = client.status()
      const sent = (async () => {
        for (let at = 0; at < list.length - 1 && !client.socket.destroyed; at += PIECE_BYTES)
          await client.write(list.subarray(at, Math.min(list.length - 1, at + PIECE_BYTES)))
      })()
      return { client, answered, sent }
    }),
  )
  const statuses: number[] = []
  for (const { answered } of clients) void answered.then((status) => statuses.push(status))
  await eventually(async () => {
    const honest = await fetch(`${server.url}/api/v2/projects/p/object-stream`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer honest' },
      body: JSON.stringify({ objectIds: ['0'.repeat(32)] }),
    })
    await honest.text()
    return honest.status === 200
  }, 'an honest list is answered')
  await Promise.all(clients.map(({ answered, sent }) => Promise.race([answered, sent])))
  const growth = (await server.peakBytes()) - before
  const buffers = (await server.collected()).buffersBytes - idle.buffersBytes
  t.diagnostic(
    `${(growth / MB).toFixed(0)} MB more, ${(buffers / MB).toFixed(0)} MB of it in use; answers ${[...new Set(statuses)].join()} for ${statuses.length}`,
  )
  assert.ok(buffers < BUFFERS_BYTES_MAX, `${buffers} bytes in buffers`)
  assert.ok(growth < GROWTH_BYTES_MAX, `${growth} bytes more`)
  for (const { client } of clients) client.socket.destroy()
  server.assertAlive()
})

test('case 30: gzip lists of 4.4 million ids are refused', async (t) => {
  const server = await attackedServer(t, { heapMb: HEAP_MB, memoryWaitMs: 3_000 })
  await warmed(server)
  const before = await server.peakBytes()
  const ids = Array.from({ length: 4_400_000 }, (_, n) => `"${n.toString(36).padStart(4, '0')}"`)
  const body = gzipSync(`{"objects":[${ids.join()}]}`)
  const answers = await Promise.all(
    ['/api/getobjects/p', '/api/diff/p', '/api/getobjects/p'].map(async (path) => {
      const client = await rawClient(server.port)
      const headers = {
        'Content-Type': 'application/json',
        'Content-Encoding': 'gzip',
        'Content-Length': body.length,
        Connection: 'close',
      }
      await client.write(head('POST', path, 'attacker', headers))
      void client.write(body)
      await client.status()
      return client.got()
    }),
  )
  const growth = (await server.peakBytes()) - before
  t.diagnostic(`${(growth / MB).toFixed(0)} MB more`)
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 (413|503) /)
  assert.ok(growth < GROWTH_BYTES_MAX, `${growth} bytes more`)
  server.assertAlive()
})
