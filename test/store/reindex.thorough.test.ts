import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asGuarded } from '../../src/storage/guard.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import type { Finding } from '../../src/store/upkeep/finding.ts'
import { headKey, packKey } from '../../src/store/records/keys.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { faulty, gate, hooked, imageOf, noFault, putBlob, putRecord, writesIds } from './failures.ts'
import { Oracle, randomGraph, referTo, seeded, splitRandomly } from './graphs.ts'
import { sweepForDays } from './sweeping.ts'
import {
  idsOf,
  heldCount,
  assertSound,
  batchesOf,
  collected,
  download,
  findingsOf,
  heldOf,
  lineOf,
  listed,
  type Made,
  measureStorage,
  never,
  type Opened,
  openStore,
  put,
} from './support.ts'

const random = seeded(91)
/** Large enough that each of four uploads needs a blob. */
const GRAPH: readonly Made[] = randomGraph(random, {
  objects: 1_050,
  paddingBytes: 800,
  missingPercent: 2,
  claimPercent: 3,
})
const ROOT: string = GRAPH[0].id
const oracle: Oracle = new Oracle()
oracle.add(GRAPH)

async function filled(project = 'demo', backend: StorageBackend = memoryBackend()): Promise<Opened> {
  const opened = await openStore(backend)
  const parts = 4
  for (let i = 0; i < parts; i++)
    await put(
      opened.store,
      project,
      GRAPH.filter((_, index) => index % parts === i),
    )
  return opened
}

async function reindex(backend: StorageBackend): Promise<{ damages: Finding[]; notes: Finding[] }> {
  const findings = await collected(reindexStore(backend))
  return {
    damages: findings.filter(({ severity }) => severity === 'damage'),
    notes: findings.filter(({ severity }) => severity === 'note'),
  }
}

async function assertWhole(backend: StorageBackend, project = 'demo'): Promise<void> {
  await assertSound(backend)
  const opened = await openStore(backend)
  assert.deepEqual(opened.background, [])
  for (const root of [ROOT, GRAPH[500].id]) {
    const { ids, missing } = oracle.closure(root)
    const got = await download(opened.store, project, root)
    assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids))
    assert.deepEqual(got?.missing, missing)
  }
  assert.deepEqual(await put(opened.store, project, GRAPH), {
    objects: GRAPH.length,
    inserted: 0,
    differing: 0,
    differingIds: [],
  })
  await opened.store.idle()
  assert.deepEqual(opened.background, [])
  await assertSound(backend)
  await opened.store.close()
}

async function removeRecords(
  backend: StorageBackend,
  isChosen: (kind: string, key: string) => boolean,
): Promise<number> {
  let removed = 0
  for (const { key } of (await imageOf(backend)).records) {
    if (!isChosen(String.fromCharCode(key[0]), Buffer.from(key).toString())) continue
    await putRecord(backend, key, undefined)
    removed++
  }
  return removed
}

test('a reindex leaves a sound storage unchanged, however often it runs', async () => {
  const { store, backend } = await filled()
  await download(store, 'demo', ROOT)
  await store.idle()
  await store.close()
  const before = await measureStorage(backend)
  for (let i = 0; i < 2; i++) {
    assert.deepEqual((await reindex(backend)).damages, [])
    const { p: _plans, ...records } = before.records
    assert.deepEqual((await measureStorage(backend)).records, records)
  }
  await assertWhole(backend)
})

test('packs in blobs restore everything after all records are lost', async () => {
  const { store, backend } = await filled()
  await store.close()
  await removeRecords(backend, () => true)
  // A server that is started before the repair must not take the blobs for garbage.
  const hasty = await openStore(backend, { clock: { now: () => Date.now() + 48 * 3_600_000 } })
  await hasty.store.idle()
  assert.deepEqual(await heldOf(hasty.store, 'demo', [ROOT]), new Set())
  await hasty.store.close()
  const { damages, notes } = await reindex(backend)
  assert.deepEqual(damages, [])
  assert.equal(
    notes.filter(({ message }) => message.includes('no record names')).length,
    4,
    'packs whose upload may not have been acknowledged are told',
  )
  await assertWhole(backend)
})

test('partly lost or damaged records are rebuilt', async () => {
  const losses: [string, (kind: string) => boolean][] = [
    ['objects', (kind) => kind === 'o'],
    ['some objects', (kind) => kind === 'o' && random(3) === 0],
    ['heads', (kind) => kind === 'h'],
    ['heads and objects', (kind) => kind === 'h' || kind === 'o'],
    ['plans', (kind) => kind === 'p'],
  ]
  for (const [what, isChosen] of losses) {
    for (const isDamaged of what === 'objects' || what === 'heads' ? [false, true] : [false]) {
      const { store, backend } = await filled()
      await download(store, 'demo', ROOT)
      await store.idle()
      await store.close()
      if (!isDamaged) assert.ok((await removeRecords(backend, isChosen)) > 0, what)
      else {
        for (const { key, value } of (await imageOf(backend)).records) {
          if (!isChosen(String.fromCharCode(key[0]))) continue
          value[value.length >> 1] ^= 4
          await putRecord(backend, key, value)
        }
      }
      const { damages } = await reindex(backend)
      assert.equal(damages.length > 0, isDamaged && what.startsWith('heads'), what)
      await assertWhole(backend)
    }
  }
})

test('a pack with a lost or damaged record is found again, and its number is not reused', async () => {
  for (const isDamaged of [false, true]) {
    const { store, backend } = await filled()
    await store.close()
    const key = packKey('demo', 1, 2)
    const [value] = await backend.records.getMany([key])
    assert.ok(value !== undefined)
    value[30] ^= 1
    await putRecord(backend, key, isDamaged ? value : undefined)
    const { damages, notes } = await reindex(backend)
    assert.deepEqual(
      damages.map(({ subject }) => subject),
      isDamaged ? ['pack 2'] : [],
    )
    assert.ok(notes.some(({ message }) => message.includes('no record names')))
    await assertWhole(backend)
  }
})

test('an unreadable pack is reported, and the others are restored', async () => {
  const { store, backend } = await filled()
  await store.close()
  const { blobs } = await imageOf(backend)
  const { name, bytes } = blobs[1]
  const damaged = Buffer.from(bytes)
  damaged[bytes.length - 300] ^= 1
  await putBlob(backend, name, damaged)
  await removeRecords(backend, (kind) => kind === 'o')
  const { damages } = await reindex(backend)
  assert.equal(damages.length, 1)
  assert.match(damages[0].message, /it cannot be used/)
  const reopened = await openStore(backend)
  await reopened.store.idle()
  const held = await heldOf(reopened.store, 'demo', idsOf(GRAPH))
  assert.ok(held.size >= GRAPH.length * 0.7 && held.size < GRAPH.length)
  assert.ok((await measureStorage(backend)).blobs.includes(name), 'the damaged pack stays for who may repair it')
  await put(reopened.store, 'demo', GRAPH)
  assert.equal((await download(reopened.store, 'demo', ROOT))?.ids.size, oracle.closure(ROOT).ids.size)
  await reopened.store.close()
})

test('a pack with a damaged header stays usable if its record exists', async () => {
  const { store, backend } = await filled()
  await store.close()
  const [{ name, bytes }] = (await imageOf(backend)).blobs
  const damaged = Buffer.from(bytes)
  damaged[20] ^= 1
  await putBlob(backend, name, damaged)
  await removeRecords(backend, (kind) => kind === 'o')
  assert.deepEqual((await reindex(backend)).damages, [])
  const reopened = await openStore(backend)
  assert.equal((await download(reopened.store, 'demo', ROOT))?.ids.size, oracle.closure(ROOT).ids.size)
  await reopened.store.close()
})

test('small packs share the fate of their records', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', [{ id: 'a', children: referTo(['b']) }])
  await put(store, 'demo', [{ id: 'b' }])
  await store.close()
  await removeRecords(backend, (kind, key) => kind === 'o' || key.includes('\x00000000000002\0'))
  const { damages } = await reindex(backend)
  assert.deepEqual(
    damages.map(({ subject }) => subject),
    ['packs of the project'],
  )
  await assertSound(backend)
  const reopened = await openStore(backend)
  assert.deepEqual((await download(reopened.store, 'demo', 'a'))?.missing, ['b'])
  assert.deepEqual(await put(reopened.store, 'demo', [{ id: 'b' }]), {
    objects: 1,
    inserted: 1,
    differing: 0,
    differingIds: [],
  })
  await assertSound(backend)
  await reopened.store.close()
})

test('the earlier of several texts of an id wins', async () => {
  let now = 1_000
  const { store, backend } = await openStore(memoryBackend(), { clock: { now: () => (now += 1_000) } })
  const padding = Array.from({ length: 12_000 }, () => random(2 ** 32).toString(36)).join('')
  const all = gate()
  let ready = 0
  const together = async function* (object: Made): AsyncGenerator<ObjectBatch> {
    yield* batchesOf([object, { id: `pad${String(object['text'])}`, padding }])
    if (++ready === 3) all.open()
    await all.opened
  }
  await Promise.all([1, 2, 3].map((text) => store.put('demo', together({ id: 'a', text }), { signal: never })))
  const [winner] = await listed(store, 'demo', ['a'])
  await store.close()
  await removeRecords(backend, (kind) => kind === 'o')
  await reindex(backend)
  const kept = await openStore(backend)
  assert.deepEqual(await listed(kept.store, 'demo', ['a']), [winner])
  await kept.store.close()
  // Without any record the times in the packs decide.
  await removeRecords(backend, () => true)
  await reindex(backend)
  const rebuilt = await openStore(backend)
  assert.deepEqual(await listed(rebuilt.store, 'demo', ['a']), [lineOf({ id: 'a', text: 1 })])
  await assertSound(backend)
  await rebuilt.store.close()
})

test('a committed pack that was not applied is applied', async () => {
  const inner = memoryBackend()
  let isCrashed = false
  const crashing = await openStore(
    hooked(inner, (call, key, work) => {
      isCrashed ||= writesIds(call, key)
      return isCrashed ? Promise.reject(new Error('crashed')) : work()
    }),
  )
  await assert.rejects(put(crashing.store, 'demo', [{ id: 'a' }, { id: 'b' }]))
  await crashing.store.idle()
  assert.equal((await measureStorage(inner)).records['w'], 1)
  assert.deepEqual((await reindex(inner)).damages, [])
  await assertSound(inner)
  const { store } = await openStore(inner)
  assert.deepEqual(await heldOf(store, 'demo', ['a', 'b']), new Set(['a', 'b']))
})

test('a removed project stays removed after any loss, and can be filled and reindexed again', async () => {
  for (const lost of ['nothing', 'records', 'head', 'marks', 'tombstone content']) {
    let isSweeping = true
    const inner = memoryBackend()
    const opened = await filled(
      'demo',
      hooked(inner, (call, _detail, work) =>
        call === 'remove' && !isSweeping ? Promise.reject(new Error('cut off')) : work(),
      ),
    )
    await put(opened.store, 'other', [{ id: 'x' }])
    isSweeping = false
    await opened.store.remove('demo')
    await opened.store.idle()
    await opened.store.close()
    if (lost === 'records') await removeRecords(inner, (_kind, key) => key.includes('\0demo\0'))
    if (lost === 'head') await putRecord(inner, headKey('demo'), undefined)
    if (lost === 'marks') await removeRecords(inner, (kind) => kind === 'g')
    if (lost === 'tombstone content') {
      const tombstone = (await imageOf(inner)).blobs.find(({ name }) => name.includes('/tombstone-'))
      assert.ok(tombstone !== undefined)
      await putBlob(
        inner,
        tombstone.name,
        tombstone.bytes.map((byte, i) => (i === 20 ? byte ^ 1 : byte)),
      )
      await removeRecords(inner, (_kind, key) => key.includes('\0demo\0'))
    }
    for (let round = 0; round < 2; round++) {
      // The sweep of the first opening writes a damaged tombstone anew.
      const damages = round === 0 && lost === 'tombstone content' ? 1 : 0
      assert.equal((await reindex(inner)).damages.length, damages, lost)
      const again = await openStore(inner)
      await again.store.idle()
      assert.deepEqual(again.background, [])
      const expected = round === 0 ? [] : ['fresh']
      assert.deepEqual(
        [...(await heldOf(again.store, 'demo', [ROOT, GRAPH[3].id, 'fresh']))],
        expected,
        `${lost}, round ${round}`,
      )
      assert.deepEqual([...(await heldOf(again.store, 'other', ['x']))], ['x'])
      await sweepForDays(inner)
      const { blobs } = await measureStorage(inner)
      assert.equal(blobs.filter((name) => !name.includes('/tombstone-')).length, 0, `${lost}: space comes back`)
      await put(again.store, 'demo', [{ id: 'fresh' }])
      await again.store.idle()
      assert.equal((await findingsOf(inner)).damages.length, 0)
      await again.store.close()
    }
  }
})

test('a storage fault stops the work without loss, and the next run completes it', async () => {
  for (const isDone of [false, true]) {
    for (let at = 0; ; at += 2) {
      const inner = memoryBackend()
      const { store } = await openStore(inner)
      for (const objects of splitRandomly(seeded(3), GRAPH.slice(0, 120), 3)) await put(store, 'demo', objects)
      await put(store, 'gone', [{ id: 'x' }])
      await store.remove('gone')
      await store.close()
      await removeRecords(inner, (kind) => kind === 'o')
      const fault = Object.assign(noFault(), { at, isDone, mode: 'crash' })
      const run = collected(reindexStore(asGuarded(faulty(inner, fault))))
      const isHit = await run.then(
        () => false,
        () => true,
      )
      if (isHit) await assert.rejects(run, { code: 'storage_unavailable' })
      assert.deepEqual((await reindex(inner)).damages, [], `call ${at}`)
      await assertSound(inner)
      const reopened = await openStore(inner)
      assert.equal(await heldCount(reopened.store, 'demo', GRAPH.slice(0, 120)), 120)
      assert.equal((await heldOf(reopened.store, 'gone', ['x'])).size, 0)
      await reopened.store.close()
      if (!isHit) break
    }
  }
})
