import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { condemnedBlobEntry } from '../../src/store/records/condemned-blobs.ts'
import { condemnedBlobKey, projectFolder } from '../../src/store/records/keys.ts'
import { decodeCondemnedBlob } from '../../src/store/records/records.ts'
import { EPOCH_MS } from '../../src/store/upkeep/epochs.ts'
import { eventually } from '../support/patience.ts'
import { hooked, imageOf, putBlob, putRecord } from './failures.ts'
import { randomGraph, seeded } from './graphs.ts'
import { GRAPH, ROOT } from './planned.ts'
import { assertSound, download, heldCount, type Made, measureStorage, never, openStore, put } from './support.ts'
import { GRACE_EPOCHS, HOUR_MS, sweeperOver } from './sweeping.ts'
import { TimeByHand } from './time.ts'

const MINUTE_MS = 60_000
const PACK: readonly Made[] = randomGraph(seeded(3), { objects: 300, paddingBytes: 1_200 })
const ORPHANS = ['0'.repeat(32), `plan-${'1'.repeat(32)}`].map((file) => `${projectFolder('demo')}/${file}`)

/** A project with a pack and a plan, blobs that nothing names, and what this server sees. */
async function withOrphans(): Promise<{ readonly backend: StorageBackend; readonly named: readonly string[] }> {
  const { store, backend } = await openStore()
  await put(store, 'demo', GRAPH)
  await download(store, 'demo', ROOT)
  await put(store, 'gone', [{ id: 'x' }])
  await store.remove('gone')
  await store.idle()
  await store.close()
  const named = (await measureStorage(backend)).blobs
  assert.equal(named.length, 3, 'a pack, a plan and a tombstone')
  for (const name of ORPHANS) await putBlob(backend, name, Buffer.from('left behind'))
  return { backend, named }
}

async function marksIn(backend: StorageBackend): Promise<number> {
  return (await measureStorage(backend)).records['c'] ?? 0
}

test('unreferenced blobs are marked after an hour, and removed when the mark is a day of epochs old', async () => {
  const { backend, named } = await withOrphans()
  const stranger = `${'e'.repeat(64)}/${'2'.repeat(32)}`
  await putBlob(backend, stranger, Buffer.from('of a project whose record is lost'))
  const all = [...named, ...ORPHANS, stranger].sort()
  const { sweep, epochs, pass } = sweeperOver(backend)
  await sweep.condemnUnnamed(never)
  pass(HOUR_MS - 1)
  await sweep.condemnUnnamed(never)
  assert.equal(await marksIn(backend), 0)
  pass(1)
  await sweep.condemnUnnamed(never)
  assert.equal(await marksIn(backend), ORPHANS.length)
  await epochs.advance(GRACE_EPOCHS - 1)
  await sweep.removeCondemned(never)
  assert.deepEqual((await measureStorage(backend)).blobs, all)
  await epochs.advance()
  await sweep.removeCondemned(never)
  assert.deepEqual((await measureStorage(backend)).blobs, [...named, stranger].sort())
  assert.equal(await marksIn(backend), ORPHANS.length, 'the marks outlive the blobs')
  await epochs.advance(GRACE_EPOCHS)
  await sweep.removeCondemned(never)
  assert.equal(await marksIn(backend), 0)
  await assertSound(backend)
})

test('the clock of the storage has no effect', async () => {
  const { backend, named } = await withOrphans()
  const { blobs } = backend
  const old: StorageBackend = {
    ...backend,
    blobs: {
      ...hooked(backend, (_call, _detail, work) => work()).blobs,
      list: async function* (prefix, options) {
        for await (const found of blobs.list(prefix, options)) yield found.map((blob) => ({ ...blob, modifiedAtMs: 0 }))
      },
    },
  }
  for (let start = 0; start < 3; start++) {
    const opened = await openStore(old)
    await opened.store.idle()
    await opened.store.close()
  }
  assert.deepEqual((await measureStorage(backend)).blobs, [...named, ...ORPHANS].sort())
})

test('a pack whose blob was condemned meanwhile is not committed, and the upload can be repeated', async () => {
  const inner = memoryBackend()
  const { records } = inner
  let condemned: string | undefined
  const slow = hooked(inner, async (call, detail, work) => {
    const result = await work()
    // Between the blob and the commit so much time passes that a server takes it for a leftover.
    if (call === 'put') {
      condemned ??= detail
      if (condemned === detail) await records.commit({ put: [condemnedBlobEntry('demo', detail, 1)] })
    }
    return result
  })
  const { store } = await openStore(slow)
  await assert.rejects(put(store, 'demo', PACK), { code: 'overloaded' })
  assert.equal((await measureStorage(inner)).records['k'], undefined)
  const { inserted } = await put(store, 'demo', PACK)
  assert.equal(inserted, PACK.length)
  await assertSound(inner)
  await store.close()
})

test('a server that sleeps through the removal of its blob does not commit a pack without one', async () => {
  const inner = memoryBackend()
  const { sweep, epochs, pass } = sweeperOver(inner)
  const other = await openStore(inner)
  await put(other.store, 'demo', [{ id: 'first' }])
  let isAsleep = true
  const sleeping = hooked(inner, async (call, detail, work) => {
    const result = await work()
    if (call !== 'put' || !isAsleep) return result
    isAsleep = false
    await sweep.condemnUnnamed(never)
    pass(HOUR_MS)
    await sweep.condemnUnnamed(never)
    await epochs.advance(GRACE_EPOCHS)
    await sweep.removeCondemned(never)
    assert.deepEqual((await measureStorage(inner)).blobs, [], detail)
    return result
  })
  const { store } = await openStore(sleeping)
  await assert.rejects(put(store, 'demo', PACK), { code: 'overloaded' })
  assert.equal((await put(store, 'demo', PACK)).inserted, PACK.length)
  await assertSound(inner)
  await Promise.all([store.close(), other.store.close()])
})

test('a blob that a record names is never removed, regardless of its mark', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', PACK)
  const [blobName] = (await measureStorage(backend)).blobs
  await backend.records.commit({ put: [condemnedBlobEntry('demo', blobName, 0)] })
  const { sweep, epochs } = sweeperOver(backend)
  await epochs.advance(2 * GRACE_EPOCHS)
  await sweep.removeCondemned(never)
  assert.deepEqual((await measureStorage(backend)).blobs, [blobName])
  assert.equal(await heldCount(store, 'demo', PACK), PACK.length)
  await store.close()
})

test('a damaged pack record keeps the sweep from removing or marking any blob', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', PACK)
  await put(store, 'demo', [{ id: 'a' }])
  await store.close()
  const record = (await imageOf(backend)).records.find(({ key }) => key[0] === 'k'.charCodeAt(0))
  assert.ok(record !== undefined)
  await putBlob(backend, ORPHANS[0], Buffer.from('left behind'))
  await backend.records.commit({ put: [condemnedBlobEntry('demo', ORPHANS[0], 0)] })
  await putRecord(
    backend,
    record.key,
    record.value.map((byte, i) => (i === 10 ? byte ^ 1 : byte)),
  )
  const { sweep, epochs, pass } = sweeperOver(backend)
  await epochs.advance(GRACE_EPOCHS)
  await assert.rejects(sweep.removeCondemned(never), { code: 'corrupt_data' })
  for (let hour = 0; hour < 3; hour++) {
    await assert.rejects(sweep.condemnUnnamed(never), { code: 'corrupt_data' })
    pass(HOUR_MS)
  }
  assert.equal((await measureStorage(backend)).blobs.length, 2)
  assert.equal(await marksIn(backend), 1)
})

test('a sweep that was interrupted between a blob and its mark is repeated', async () => {
  const { backend } = await withOrphans()
  const { epochs } = sweeperOver(backend)
  await backend.records.commit({ put: ORPHANS.map((name) => condemnedBlobEntry('demo', name, 0)) })
  await epochs.advance(GRACE_EPOCHS)
  const cutOff = sweeperOver(
    hooked(backend, (call, _detail, work) => (call === 'commit' ? Promise.reject(new Error('crashed')) : work())),
  )
  await assert.rejects(cutOff.sweep.removeCondemned(never))
  await sweeperOver(backend).sweep.removeCondemned(never)
  const key = condemnedBlobKey('demo', ORPHANS[0])
  const [value] = await backend.records.getMany([key])
  assert.ok(value !== undefined)
  assert.deepEqual(decodeCondemnedBlob(key, value), { epoch: GRACE_EPOCHS, isRemoved: true })
})

test('a running server sweeps with each epoch that it begins, without a restart', async () => {
  const { backend, named } = await withOrphans()
  const time = new TimeByHand()
  const { store } = await openStore(backend, { environment: time.environment })
  await store.idle()
  const passEpoch = async (): Promise<void> => {
    const before = await store.epochs.current()
    await eventually(async () => {
      time.pass(EPOCH_MS)
      return (await store.epochs.current()).number > before.number
    }, 'the server begins an epoch')
  }
  await eventually(async () => {
    await passEpoch()
    return (await marksIn(backend)) === ORPHANS.length
  }, 'the server marks what nothing names')
  await store.epochs.advance(GRACE_EPOCHS)
  await eventually(async () => {
    await passEpoch()
    return (await measureStorage(backend)).blobs.length === named.length
  }, 'the server removes what it marked')
  await store.close()
})

test('a server lists the storage a minute after its start, not beside the first requests', async () => {
  const { backend } = await withOrphans()
  const time = new TimeByHand()
  let listings = 0
  const watched = hooked(backend, (_method, _key, call) => call())
  const list: StorageBackend['blobs']['list'] = (prefix, options) => {
    listings++
    return backend.blobs.list(prefix, options)
  }
  const counted = { ...watched, blobs: { ...watched.blobs, list } }
  const { store } = await openStore(counted, { environment: time.environment })
  await download(store, 'demo', ROOT)
  await store.idle()
  assert.equal(listings, 0)
  await eventually(() => {
    time.pass(MINUTE_MS)
    return listings === 1
  }, 'the server sweeps')
  await store.close()
})
