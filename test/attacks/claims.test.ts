import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/patience.ts'
import { attackedServer } from './attacked.ts'

/* Case 33: what is claimed and not there is remembered. */

const CLAIMS = 1_000_000
const ROUNDS = 5
const CPU_MS_MAX = 200

test('case 33: repeated requests for an object with a million absent children', async (t) => {
  const server = await attackedServer(t, { heapMb: 512 })
  const claims = Array.from({ length: CLAIMS }, (_, n) => `"${n.toString(36)}":1`)
  const body = gzipSync(`[{"id":"root","__closure":{${claims.join()}}}]`)
  const sent = await fetch(`${server.url}/objects/p`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/gzip' },
    body,
  })
  assert.equal(sent.status, 200, await sent.text())
  const uploaded = await server.load()
  t.diagnostic(`the upload held the loop for ${uploaded.loopHeldMsMax.toFixed(0)} ms`)
  const ask = async (method: string): Promise<void> => {
    const answer = await fetch(`${server.url}/objects/p/root`, { method, headers: { Accept: 'text/plain' } })
    assert.deepEqual([answer.status, answer.headers.get('stowage-objects')], [200, '1'])
    await answer.arrayBuffer()
  }
  await ask('HEAD')
  const first = await server.load()
  t.diagnostic(`first: ${(first.cpuMs - uploaded.cpuMs).toFixed(0)} ms, loop ${first.loopHeldMsMax.toFixed(0)} ms`)
  // A planned answer has an entity tag.
  await eventually(
    async () => (await fetch(`${server.url}/objects/p/root`, { method: 'HEAD' })).headers.has('etag'),
    'what was found is remembered',
  )
  let before = await server.load()
  for (let round = 0; round < ROUNDS; round++) {
    // Uploads beside it must not bring all of it back.
    const other = JSON.stringify([{ id: `other-${round}` }])
    const headers = { 'Content-Type': 'application/json' }
    await (await fetch(`${server.url}/objects/p`, { method: 'POST', headers, body: other })).text()
    await ask('HEAD')
    const after = await server.load()
    t.diagnostic(`again: ${(after.cpuMs - before.cpuMs).toFixed(0)} ms, loop ${after.loopHeldMsMax.toFixed(0)} ms`)
    assert.ok(after.cpuMs - before.cpuMs < CPU_MS_MAX, `${after.cpuMs - before.cpuMs} ms`)
    before = after
  }
  const late = JSON.stringify([{ id: (CLAIMS - 1).toString(36) }])
  await (
    await fetch(`${server.url}/objects/p`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: late,
    })
  ).text()
  const grown = await fetch(`${server.url}/objects/p/root`, { method: 'HEAD' })
  assert.equal(grown.headers.get('stowage-objects'), '2', 'a claimed object that comes is found')
  server.assertAlive()
})
