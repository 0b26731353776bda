import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { MB } from '../../src/limits.ts'
import { jsonUpload } from '../http/served.ts'
import { eventually } from '../support/patience.ts'
import { type AttackedServer, attackedServer, head, type RawClient, rawClient } from './attacked.ts'

/*
 * Case 19: clients that ask for 40 MB and stop reading, compared with the same connections idle (Linux). Answers that fill the buffers of the system on
 * both sides take time; only then have all of them stopped.
 */

/** `npm run soak` has 500 of them. */
const READERS = Number(process.env.STOWAGE_SLOW_READERS ?? 100)
const HEAP_MB = 256
const BUFFERS_BYTES_MAX = 64 * MB
/**
 * With what the allocator keeps between buffers, which depends on how the connections took turns. Measured: 44 to 98
 * MB.
 */
const RESIDENT_BYTES_MAX = 160 * MB
/**
 * What each leases for its answer and its plan, and what all share beyond that: at most a quarter of the 96 MB, and the
 * last pieces.
 */
const HELD_BYTES_MAX = READERS * 131_072 + 32 * MB
const CHILDREN_IN_ONE_UPLOAD = 1_000
const UPLOADS = 8
/** The server is at rest when it needs less of a processor than this. */
const REST_CPU_SHARE = 0.1
const LOOK_MS = 500

async function uploaded(url: string, objects: readonly object[]): Promise<void> {
  const answer = await fetch(`${url}/objects/p`, jsonUpload(objects))
  assert.equal(answer.status, 200, await answer.text())
}

/** 40 MB that compress badly, below `large`, and an object by itself. */
async function uploadLarge(url: string): Promise<void> {
  const children: { readonly referencedId: string }[] = []
  for (let upload = 0; upload < UPLOADS; upload++) {
    const objects = Array.from({ length: CHILDREN_IN_ONE_UPLOAD }, (_, n) => ({
      id: `child${upload}n${n}`,
      text: randomBytes(2_500).toString('hex'),
    }))
    await uploaded(url, objects)
    for (const { id } of objects) children.push({ referencedId: id })
  }
  await uploaded(url, [{ id: 'large', children }, { id: 'small' }])
}

async function download(url: string): Promise<number> {
  const answer = await fetch(`${url}/objects/p/large`, { headers: { Accept: 'text/plain' } })
  assert.equal(answer.status, 200)
  let bytes = 0
  for await (const chunk of answer.body as ReadableStream<Uint8Array>) bytes += chunk.length
  return bytes
}

async function atRest(server: AttackedServer): Promise<void> {
  let before = await server.load()
  let beforeMs = performance.now()
  await eventually(async () => {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    const [after, afterMs] = [await server.load(), performance.now()]
    const share = (after.cpuMs - before.cpuMs) / (afterMs - beforeMs)
    before = after
    beforeMs = afterMs
    return share < REST_CPU_SHARE
  }, 'the server is at rest')
}

async function asked(client: RawClient, root: string): Promise<void> {
  await client.write(head('GET', `/objects/p/${root}`, 'reader', { Accept: 'text/plain' }))
}

test(`case 19: ${READERS} stalled readers beside one that reads`, async (t) => {
  const server = await attackedServer(t, { heapMb: HEAP_MB })
  await uploadLarge(server.url)
  const whole = await download(server.url)
  await eventually(
    async () => (await fetch(`${server.url}/objects/p/large`, { method: 'HEAD' })).headers.has('etag'),
    'a plan',
  )
  await download(server.url)
  const clients = await Promise.all(Array.from({ length: READERS }, () => rawClient(server.port, '127.0.0.2')))
  t.after(() => clients.forEach(({ socket }) => socket.destroy()))
  for (const client of clients) {
    await asked(client, 'small')
    assert.equal(await client.status(), 200)
  }
  await atRest(server)
  const idle = await server.collected()
  const idleBytes = await server.residentBytes()
  for (const client of clients) {
    client.socket.pause()
    await asked(client, 'large')
  }
  await atRest(server)
  const { heldBytes, buffersBytes } = await server.collected()
  const buffersGrowth = buffersBytes - idle.buffersBytes
  const growth = (await server.residentBytes()) - idleBytes
  t.diagnostic(
    `${Math.round(growth / MB)} MB more, ${Math.round(buffersGrowth / MB)} MB of it buffers, peak ${Math.round(((await server.peakBytes()) - idleBytes) / MB)} MB, ${Math.round(heldBytes / MB)} MB leased`,
  )
  assert.ok(buffersGrowth < BUFFERS_BYTES_MAX, `${buffersGrowth} bytes more in buffers`)
  assert.ok(growth < RESIDENT_BYTES_MAX, `${growth} bytes more`)
  assert.ok(heldBytes <= HELD_BYTES_MAX, `${heldBytes} bytes are leased`)
  const [small, again] = await Promise.all([fetch(`${server.url}/objects/p/small`), download(server.url)])
  assert.deepEqual([small.status, again], [200, whole])
  await small.arrayBuffer()
  for (const { socket } of clients) socket.destroy()
  await eventually(async () => (await server.load()).heldBytes === 0, 'everything is given back')
  server.assertAlive()
})
