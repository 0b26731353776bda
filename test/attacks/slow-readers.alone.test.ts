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
/** The server is at rest when it writes less than this in so many turns of its event loop and so much time. */
const REST_BYTES_MAX = 65_536
const REST_TURNS = 50
const LOOK_MS = 500
/** The others have begun when each of them was sent so much. */
const BEGUN_BYTES = 32_768
/** The parts of one more download. */
const PART_BYTES = 1_048_576
/**
 * What the others receive meanwhile, in half of all cases: while a client receives such a part, and while `/healthz` is
 * answered. A bound on time would depend on the machine. Measured on a busy one: 3 MB and 0.2 MB. Clients that are all
 * served alike would receive 37 MB (500 readers) beside a part, and 15 MB in one turn of the event loop.
 */
const BESIDE_PART_BYTES_MAX = 8 * MB
const BESIDE_HEALTH_BYTES_MAX = 4 * MB
const HEALTH_REQUESTS = 50

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

async function download(url: string, onBytes?: (bytes: number) => Promise<void>): Promise<number> {
  const answer = await fetch(`${url}/objects/p/large`, { headers: { Accept: 'text/plain' } })
  assert.equal(answer.status, 200)
  let bytes = 0
  for await (const chunk of answer.body as ReadableStream<Uint8Array>) {
    bytes += chunk.length
    await onBytes?.(bytes)
  }
  return bytes
}

/** The processor time of the server would not tell: a busy machine gives it little. */
async function atRest(server: AttackedServer): Promise<void> {
  await eventually(async () => {
    const before = await server.writtenBytes()
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    for (let turn = 0; turn < REST_TURNS; turn++) await server.load()
    return (await server.writtenBytes()) - before < REST_BYTES_MAX
  }, 'the server is at rest')
}

/** The bytes that others received meanwhile, for each part of one more download. */
async function besideParts(server: AttackedServer): Promise<readonly number[]> {
  const parts: number[] = []
  let writtenBytes = await server.writtenBytes()
  let partsBytes = 0
  await download(server.url, async (bytes) => {
    if (bytes - partsBytes < PART_BYTES) return
    const now = await server.writtenBytes()
    parts.push(Math.max(0, now - writtenBytes - (bytes - partsBytes)))
    writtenBytes = now
    partsBytes = bytes
  })
  return parts
}

/** The same for each answer of `/healthz`. */
async function besideHealth(server: AttackedServer): Promise<readonly number[]> {
  const sizes: number[] = []
  for (let request = 0; request < HEALTH_REQUESTS; request++) {
    const before = await server.writtenBytes()
    await (await fetch(`${server.url}/healthz`)).arrayBuffer()
    sizes.push((await server.writtenBytes()) - before)
  }
  return sizes
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
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
  const sentBytes = await server.writtenBytes()
  await eventually(
    async () => (await server.writtenBytes()) - sentBytes > READERS * BEGUN_BYTES,
    'all others have begun',
  )
  const health = median(await besideHealth(server))
  const beside = median(await besideParts(server))
  t.diagnostic(`${health} bytes beside /healthz, ${beside} beside each part of a download`)
  assert.ok(health < BESIDE_HEALTH_BYTES_MAX, `${health} bytes were sent to others while /healthz was answered`)
  assert.ok(beside < BESIDE_PART_BYTES_MAX, `${beside} bytes were sent to others beside ${PART_BYTES}`)
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
