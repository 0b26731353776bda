import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { gate, hooked, writesIds } from './failures.ts'
import { assertRight, filled, GRAPH, ROOT } from './planned.ts'
import {
  assertSound,
  collected,
  download,
  heldCount,
  type Made,
  measureStorage,
  never,
  openStore,
  put,
  until,
} from './support.ts'
import { TimeByHand } from './time.ts'
import { eventually, turns } from '../support/patience.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { projectFolder } from '../../src/store/records/keys.ts'

/* Several stores over one backend: what one of them does must hold for the others, without a word between them. */

test('when two servers make the same plan at once, one stores it and both answer from it', async () => {
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

test('a download continues with its plan if another server evicts or replaces it', async () => {
  const inner = memoryBackend()
  const other = await openStore(inner, { planBytesMax: 1 })
  const reader = await filled(inner)
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

test('a server learns that its plan was replaced before the blob is removed', async () => {
  const inner = memoryBackend()
  const time = new TimeByHand()
  await (await filled(inner)).store.close()
  const other = await openStore(inner, { planBytesMax: 1 })
  const server = await openStore(inner, { environment: time.environment })
  await assertRight(server)
  await server.store.idle()
  const plan = (await measureStorage(inner)).blobs.find((name) => name.includes('/plan-'))
  assert.ok(plan !== undefined)
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

test('a plan that goes with its project while another server loads it is no damage', async () => {
  const inner = memoryBackend()
  const first = await openStore(inner)
  await put(first.store, 'demo', GRAPH)
  await download(first.store, 'demo', GRAPH[0].id)
  await first.store.idle()
  const second = await openStore(
    hooked(inner, async (call, name, work) => {
      if (call !== 'read' || !name.includes('/plan-')) return work()
      await first.store.remove('demo')
      await inner.blobs.remove([name])
      return work()
    }),
  )
  await assert.rejects(second.store.closure('demo', GRAPH[0].id, { signal: never }), { code: 'not_found' })
  await second.store.idle()
  assert.deepEqual(second.background, [])
  await Promise.all([first, second].map(({ store }) => store.close()))
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

test('a living server applies what a dead one committed, within 90 s and without a restart', async () => {
  const inner = memoryBackend()
  const time = new TimeByHand()
  const living = await openStore(inner, { environment: time.environment })
  let isDead = false
  const dying = await openStore(
    hooked(inner, (call, key, work) => {
      isDead ||= writesIds(call, key)
      return isDead ? new Promise<never>(() => undefined) : work()
    }),
  )
  void put(dying.store, 'demo', GRAPH).catch(() => undefined)
  await until(() => isDead)
  assert.equal((await measureStorage(inner)).records['w'], 1)
  let passedMs = 0
  await eventually(async () => {
    if ((await measureStorage(inner)).records['w'] === undefined) return true
    time.pass(10_000)
    passedMs += 10_000
    await turns()
    return false
  }, 'the pack is applied')
  assert.ok(passedMs >= 60_000, `${passedMs} ms: an upload that takes long is left to its own server`)
  assert.ok(passedMs <= 90_000, `${passedMs} ms`)
  assert.equal(await heldCount(living.store, 'demo', GRAPH), GRAPH.length)
  assert.deepEqual(living.background, [])
  await assertSound(inner)
  await living.store.close()
})

test('a removal whose answer is lost is swept without a restart, and without another removal', async () => {
  const inner = memoryBackend()
  const time = new TimeByHand()
  const living = await openStore(inner, { environment: time.environment })
  await put(living.store, 'demo', GRAPH)
  const losing = await openStore(
    hooked(inner, async (call, key, work) => {
      const result = await work()
      if (call === 'commit' && key.startsWith('h\0')) throw new Error('the connection was lost')
      return result
    }),
  )
  await assert.rejects(losing.store.remove('demo'), { code: 'storage_unavailable' })
  await losing.store.close()
  assert.equal((await measureStorage(inner)).records['g'], 1)
  await eventually(async () => {
    if ((await measureStorage(inner)).records['g'] === undefined) return true
    time.pass(60_000)
    await turns()
    return false
  }, 'the project is swept')
  const { records, blobs } = await measureStorage(inner)
  assert.deepEqual(records, { h: 1, e: 1 })
  assert.equal(blobs.length, 1, 'the tombstone')
  assert.deepEqual(living.background, [])
  await living.store.close()
})

test('a pack that cannot be applied is reported once, and other packs are still applied', async () => {
  const inner = memoryBackend()
  const isCut = { now: false }
  const dying = await openStore(
    hooked(inner, (call, key, work) => {
      isCut.now ||= writesIds(call, key)
      return isCut.now ? Promise.reject(new Error('cut off')) : work()
    }),
  )
  const time = new TimeByHand()
  const living = await openStore(inner, { environment: time.environment })
  for (const project of ['broken', 'whole']) {
    isCut.now = false
    await assert.rejects(put(dying.store, project, GRAPH), { code: 'storage_unavailable' })
  }
  const broken = (await measureStorage(inner)).blobs.find((name) => name.startsWith(projectFolder('broken')))
  assert.ok(broken !== undefined)
  await inner.blobs.remove([broken])
  await eventually(async () => {
    time.pass(30_000)
    await turns()
    return (await heldCount(living.store, 'whole', GRAPH)) === GRAPH.length
  }, 'the other pack is applied')
  for (let look = 0; look < 5; look++) {
    time.pass(30_000)
    await turns()
  }
  assert.equal(living.background.length, 1)
  assert.equal((living.background[0] as { code: string }).code, 'corrupt_data')
  await living.store.close()
})

for (const isMade of [true, false])
  test(`when every answer to a commit is lost at times, ${isMade ? 'made' : 'not made'}, no pack is committed twice`, async () => {
    const inner = memoryBackend()
    let commits = 0
    const lossy = (): StorageBackend =>
      hooked(inner, async (call, _detail, work) => {
        if (call !== 'commit' || ++commits % 3 !== 0) return work()
        if (isMade) await work()
        throw new Error('the connection was lost')
      })
    const servers = await Promise.all([openStore(lossy()), openStore(lossy())])
    const objects = Array.from({ length: 30 }, (_, n): Made => ({ id: `o${n}` }))
    for (const [n, object] of objects.entries())
      await eventually(
        () =>
          put(servers[n % 2].store, 'demo', [object]).then(
            () => true,
            () => false,
          ),
        'the client sends it again until it is stored',
      )
    const reopened = await openStore(inner)
    assert.equal(await heldCount(reopened.store, 'demo', objects), objects.length)
    const { records } = await measureStorage(inner)
    assert.equal(records['k'], objects.length, 'one pack for each object')
    await assertSound(inner)
    await Promise.all([...servers, reopened].map(({ store }) => store.close()))
  })
