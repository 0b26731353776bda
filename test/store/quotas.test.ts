import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { ProjectTotals } from '../../src/object/graph-store.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { readTotals } from '../../src/store/records/totals.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { imageOf } from './failures.ts'
import { batchesOf, collected, type Made, never, openStore } from './support.ts'

function objects(prefix: string, count: number): Made[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `${prefix}-${String(i).padStart(4, '0')}`,
    value: 'x'.repeat(50),
  }))
}

function jsonBytes(made: readonly Made[]): number {
  return made.reduce((sum, object) => sum + Buffer.byteLength(JSON.stringify(object)), 0)
}

async function totalsOf(backend: StorageBackend): Promise<ProjectTotals> {
  const { records, blobs } = asGuarded(backend)
  return (await readTotals({ records, blobs, environment: REAL_ENVIRONMENT }, { projectId: 'p', generation: 1 })).totals
}

test('the totals of a project equal those of its packs, even after a reindex and a removal', async () => {
  const { store, backend } = await openStore()
  const many = objects('many', 2_000)
  const few = objects('few', 3)
  await store.put('p', batchesOf(many), { signal: never })
  await store.put('p', batchesOf([...few, ...many.slice(0, 10)]), { signal: never })
  const totals = await totalsOf(backend)
  assert.deepEqual([totals.objects, totals.jsonBytes], [2_003, jsonBytes([...many, ...few])])
  const { records, blobs } = await imageOf(backend)
  const packBlobs = blobs.filter(({ name }) => !name.includes('plan-'))
  assert.ok(
    totals.storedBytes > packBlobs.reduce((sum, { bytes }) => sum + bytes.length, 0),
    'one pack lies in its record',
  )
  await collected(reindexStore(asGuarded(backend)))
  // It frees the lease of the janitor, and keeps as many of all other records.
  assert.equal((await imageOf(backend)).records.length, records.filter(({ key }) => key[0] !== 0x6c).length)
  assert.deepEqual(await totalsOf(backend), totals)
  await store.put('p', batchesOf(objects('more', 1)), { signal: never })
  assert.equal((await totalsOf(backend)).objects, 2_004)
  await store.remove('p')
  await store.idle()
  assert.equal((await totalsOf(backend)).objects, 0)
})

test('held objects add nothing, so a project near its quota accepts them again', async () => {
  const held = objects('held', 9)
  const { store } = await openStore(memoryBackend(), { quotaOf: () => ({ objectsMax: 10 }) })
  await store.put('p', batchesOf(held), { signal: never })
  assert.equal((await store.put('p', batchesOf(held), { signal: never })).inserted, 0)
  await assert.rejects(store.put('p', batchesOf(objects('new', 2)), { signal: never }), {
    code: 'quota_exceeded',
    statusCode: 507,
    message: /at most 10 objects, and would hold 11 with this upload; nothing of this upload was stored/,
  })
  await store.put('p', batchesOf(objects('new', 1)), { signal: never })
  await assert.rejects(store.put('p', batchesOf(held), { signal: never }), {
    message: /at most 10 objects, and holds 10/,
  })
  await store.put('q', batchesOf(held), { signal: never })
})

test('an upload that grows beyond the quota ends early and leaves no blob', async () => {
  let batchesTaken = 0
  const large = objects('large', 5_000)
  const { store, backend } = await openStore(memoryBackend(), { quotaOf: () => ({ jsonBytesMax: 100_000 }) })
  const counted = async function* (): ReturnType<typeof batchesOf> {
    for await (const batch of batchesOf(large, 100)) {
      batchesTaken++
      yield batch
    }
  }
  await assert.rejects(store.put('p', counted(), { signal: never }), { code: 'quota_exceeded' })
  assert.ok(batchesTaken < 30, `${batchesTaken} of 50 batches`)
  assert.deepEqual((await imageOf(backend)).blobs, [])
})

test('an upload over the quota of stored bytes is refused at commit, and its blob is removed', async () => {
  const { store, backend } = await openStore(memoryBackend(), { quotaOf: () => ({ storedBytesMax: 50_000 }) })
  await assert.rejects(store.put('p', batchesOf(objects('large', 5_000)), { signal: never }), {
    code: 'quota_exceeded',
    message: /at most 50000 bytes in storage/,
  })
  assert.deepEqual((await imageOf(backend)).blobs, [])
  await store.put('p', batchesOf(objects('small', 10)), { signal: never })
})

test('a quota holds and is fully used under 32 racing uploads on two servers', async () => {
  const backend = memoryBackend()
  const quotaOf = (): { objectsMax: number } => ({ objectsMax: 105 })
  const { store: first } = await openStore(backend, { quotaOf })
  const { store: second } = await openStore(backend, { quotaOf })
  const uploads = Array.from({ length: 32 }, (_, i) =>
    (i % 2 === 0 ? first : second).put('p', batchesOf(objects(`upload${i}`, 10)), { signal: never }),
  )
  const results = await Promise.allSettled(uploads)
  const refused = results.filter((result) => result.status === 'rejected')
  for (const { reason } of refused) assert.equal((reason as { code: string }).code, 'quota_exceeded')
  assert.equal(results.length - refused.length, 10)
  assert.equal((await totalsOf(backend)).objects, 100)
})

test('uploads of known length start only if they fit together, and refused ones may retry', async () => {
  const { store } = await openStore(memoryBackend(), { quotaOf: () => ({ jsonBytesMax: 1_000 }) })
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const slow = async function* (): ReturnType<typeof batchesOf> {
    await gate
    yield* batchesOf(objects('slow', 5))
  }
  const under = store.put('p', slow(), { signal: never, bodyBytes: 800 })
  const untouched = async function* (): ReturnType<typeof batchesOf> {
    assert.fail('the upload was read')
    yield* batchesOf([])
  }
  await assert.rejects(store.put('p', untouched(), { signal: never, bodyBytes: 1_001 }), { code: 'quota_exceeded' })
  await assert.rejects(store.put('p', untouched(), { signal: never, bodyBytes: 300 }), {
    code: 'overloaded',
    isRetryable: true,
  })
  go()
  await under
  await store.put('p', batchesOf(objects('later', 1)), { signal: never, bodyBytes: 300 })
})
