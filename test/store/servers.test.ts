import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { gate, hooked } from './failures.ts'
import { assertRight, filled, GRAPH, ROOT } from './planned.ts'
import { assertSound, download, measureStorage, never, openStore, put } from './support.ts'
import { TimeByHand } from './time.ts'
import { collected } from './support.ts'

/* Several stores over one backend: what one of them does must hold for the others, without a word between them. */

test('of two servers that make the same plan at once, one stores it, and both answer by it', async () => {
  const inner = memoryBackend()
  await (await filled(inner)).store.close()
  const both = gate()
  let makers = 0
  const servers = await Promise.all(
    [0, 1].map(() =>
      openStore(
        hooked(inner, async (call, detail, work) => {
          if (call === 'put' && detail.includes('/plan-')) {
            if (++makers === 2) both.open()
            await both.opened
          }
          return work()
        }),
      ),
    ),
  )
  await Promise.all(servers.map(async (server) => download(server.store, 'demo', ROOT)))
  await both.opened
  await Promise.all(servers.map(({ store }) => store.idle()))
  const { records, blobs } = await measureStorage(inner)
  assert.equal(records['p'], 1)
  assert.equal(blobs.filter((name) => name.includes('/plan-')).length, 1, 'the plan of the slower one is gone')
  assert.equal(records['c'], undefined)
  for (const server of servers) {
    assert.equal(await assertRight(server), true)
    assert.deepEqual(server.background, [])
  }
  await assertSound(inner)
  await Promise.all(servers.map(({ store }) => store.close()))
})

test('a download goes on by a plan that another server evicts or replaces meanwhile', async () => {
  const inner = memoryBackend()
  const [reader, other] = [await filled(inner), await openStore(inner, { planBytesMax: 1 })]
  await assertRight(reader)
  await reader.store.idle()
  const selection = await reader.store.closure('demo', ROOT, { signal: never })
  assert.ok(selection?.plan !== undefined)
  const bytes = Buffer.concat(await collected(selection.lines({ signal: never })))
  // This one has room for no plan: it evicts those that it finds.
  for (const { id } of GRAPH.slice(0, 40)) {
    await download(other.store, 'demo', id)
    await other.store.idle()
  }
  const { records } = await measureStorage(inner)
  assert.ok((records['c'] ?? 0) > 0, 'plans were evicted')
  assert.ok(Buffer.concat(await collected(selection.lines({ signal: never }))).equals(bytes))
  selection.release()
  // A server that starts now sweeps, and takes nothing that is being read.
  const third = await openStore(inner)
  await third.store.idle()
  assert.equal(await assertRight(reader), true)
  assert.deepEqual(
    [reader, other, third].flatMap(({ background }) => background),
    [],
  )
  await Promise.all([reader, other, third].map(({ store }) => store.close()))
})

test('a server learns that its plan was replaced before the blob goes', async () => {
  const inner = memoryBackend()
  const time = new TimeByHand()
  await (await filled(inner)).store.close()
  const server = await openStore(inner, { environment: time.environment })
  await assertRight(server)
  await server.store.idle()
  const plan = (await measureStorage(inner)).blobs.find((name) => name.includes('/plan-'))
  assert.ok(plan !== undefined)
  const other = await openStore(inner, { planBytesMax: 1 })
  for (const { id } of GRAPH.slice(0, 40)) {
    await download(other.store, 'demo', id)
    await other.store.idle()
  }
  // A day later the blob is gone.
  await inner.blobs.remove([plan])
  time.pass(24 * 3_600_000)
  await assertRight(server)
  await Promise.all([server, other].map(({ store }) => store.close()))
})

test('uploads of two servers to one project all arrive, and none is committed twice', async () => {
  const inner = memoryBackend()
  const servers = await Promise.all([openStore(inner), openStore(inner)])
  const uploads = Array.from({ length: 40 }, (_, n) =>
    put(servers[n % 2].store, 'demo', [{ id: `o${n}` }, { id: 'shared' }]),
  )
  const inserted = (await Promise.all(uploads)).reduce((sum, result) => sum + result.inserted, 0)
  assert.equal(inserted, 41)
  await assertSound(inner)
  await Promise.all(servers.map(({ store }) => store.close()))
})
