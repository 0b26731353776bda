import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { StowageError } from '../../src/errors.ts'
import type { CallOptions } from '../../src/storage/backend.ts'
import type { Bitmap } from '../../src/store/bytes/bitmap.ts'
import { keyBounds, objectKeyMaker } from '../../src/store/records/keys.ts'
import { decodeObjectRecord, encodeObjectRecord } from '../../src/store/records/object-record.ts'
import { decodePackRecord, encodePackRecord } from '../../src/store/records/pack-record.ts'
import { hooked, imageOf, putBlob, putRecord } from './failures.ts'
import { randomGraph, seeded, shuffled, splitRandomly } from './graphs.ts'
import { collected, idSet, lineOf, listed, type Made, never, openStore, put } from './support.ts'

const GRAPH: readonly Made[] = randomGraph(seeded(31), { objects: 3_000, paddingBytes: 300 })
const BY_ID = new Map(GRAPH.map((object) => [object.id, object]))

function linesOf(ids: readonly string[]): string[] {
  return [...new Set(ids)].map((id) => lineOf(BY_ID.get(id) as Made)).sort()
}

test('a list of a few of many objects reads their blocks, and no tables', async () => {
  const inner = memoryBackend()
  const first = await openStore(inner)
  for (const part of splitRandomly(seeded(32), shuffled(seeded(33), GRAPH), 8)) await put(first.store, 'demo', part)
  await first.store.close()
  const ends = new Map<string, number>()
  const { store } = await openStore({
    ...hooked(inner, (_call, _detail, work) => work()),
    blobs: {
      ...hooked(inner, (_call, _detail, work) => work()).blobs,
      read: (name, start, end, options) => {
        ends.set(name, Math.max(end, ends.get(name) ?? 0))
        return inner.blobs.read(name, start, end, options)
      },
    },
  })
  const random = seeded(34)
  const ids = Array.from({ length: 20 }, () => GRAPH[random(GRAPH.length)].id)
  const selection = await store.select('demo', idSet([...ids, 'nowhere']), { signal: never })
  const lines = Buffer.concat(await collected(selection.lines({ signal: never })))
  assert.deepEqual(lines.toString().split('\n').slice(0, -1).sort(), linesOf(ids))
  assert.equal(selection.missing, 1)
  selection.release()
  assert.ok(ends.size > 0)
  // The tables lie at the end of a pack.
  for await (const batch of inner.blobs.list(''))
    for (const { name, sizeBytes } of batch)
      assert.ok((ends.get(name) ?? 0) < sizeBytes, `the tables of ${name} were read`)
  await store.close()
})

test('lists of every size are exact in every format, even if they cover most of a pack', async () => {
  const { store } = await openStore()
  for (const part of splitRandomly(seeded(35), shuffled(seeded(36), GRAPH), 6)) await put(store, 'demo', part)
  const random = seeded(37)
  for (const size of [1, 2, 30, 100, 400, 1_500, 3_000]) {
    const ids = shuffled(random, GRAPH)
      .slice(0, size)
      .map(({ id }) => id)
    assert.deepEqual((await listed(store, 'demo', ids)).sort(), linesOf(ids))
  }
  await store.close()
})

test('a flipped bit anywhere in a pack never becomes a wrong line', async () => {
  const { store, backend } = await openStore()
  const some = GRAPH.slice(0, 1_000)
  await put(store, 'demo', some)
  const [{ name, bytes }] = (await imageOf(backend)).blobs
  const ids = some.slice(0, 10).map(({ id }) => id)
  const expected = linesOf(ids)
  let noticed = 0
  for (let at = 100; at < bytes.length; at += bytes.length >> 8) {
    const damaged = Buffer.from(bytes)
    damaged[at] ^= 1 << (at % 8)
    await putBlob(backend, name, damaged)
    try {
      assert.deepEqual((await listed(store, 'demo', ids)).sort(), expected)
    } catch (error) {
      assert.ok(error instanceof StowageError && error.code === 'corrupt_data', String(error))
      noticed++
    }
  }
  assert.ok(noticed > 0)
  await store.close()
})

test('a record that names another line is noticed', async () => {
  const { store, backend } = await openStore()
  await put(store, 'demo', [{ id: 'a', text: 'one' }, { id: 'b', text: 'two' }, ...GRAPH.slice(0, 200)])
  const keyOf = objectKeyMaker('demo', 1)
  const [a, b] = ['a', 'b'].map((id) => keyOf(Buffer.from(id)))
  const [valueA, valueB] = await backend.records.getMany([a, b])
  assert.ok(valueA !== undefined && valueB !== undefined)
  const { lineStart } = decodeObjectRecord(b, valueB)
  await putRecord(backend, a, encodeObjectRecord(a, { ...decodeObjectRecord(a, valueA), lineStart }))
  await assert.rejects(listed(store, 'demo', ['a']), { code: 'corrupt_data' })
  assert.deepEqual(await listed(store, 'demo', ['b']), [lineOf({ id: 'b', text: 'two' })])
  await store.close()
})

test('a long list of neighbours looks up a sample of its ids, and finds the rest in the tables of their packs', async () => {
  const inner = memoryBackend()
  const asked: number[] = []
  const backend = {
    ...inner,
    records: {
      ...hooked(inner, (_call, _detail, work) => work()).records,
      getMany: (keys: readonly Uint8Array[], options?: CallOptions) => {
        asked.push(keys.length)
        return inner.records.getMany(keys, options)
      },
    },
  }
  const graph = randomGraph(seeded(41), { objects: 5_000, paddingBytes: 20 })
  const { store } = await openStore(backend)
  for (let at = 0; at < graph.length; at += 500) await put(store, 'demo', graph.slice(at, at + 500))
  const wanted = graph.slice(600, 4_400)
  const absent = Array.from({ length: 150 }, (_, i) => `absent ${i}`)
  const ids = [...absent.slice(0, 100), ...wanted.map(({ id }) => id), 'not an\nid', ...absent.slice(100)]
  asked.length = 0
  const selection = await store.select('demo', idSet(ids), { signal: never })
  const lookUps = asked.reduce((sum, count) => sum + count, 0)
  assert.ok(lookUps < 1_800, `${lookUps} look-ups`)
  assert.equal(selection.objects, wanted.length)
  assert.equal(selection.missing, absent.length + 1)
  assert.deepEqual(await selection.missingIds(100), absent.slice(0, 100))
  const lines = Buffer.concat(await collected(selection.lines({ signal: never }))).toString()
  assert.deepEqual(lines.split('\n').slice(0, -1).sort(), wanted.map(lineOf).sort())
  assert.equal(
    selection.textBytes,
    wanted.reduce((sum, object) => sum + Buffer.byteLength(lineOf(object)) - object.id.length - 1, 0),
  )
  selection.release()
  await store.close()
})

test('a long list finds objects that its packs do not certainly hold', async () => {
  const { store, backend } = await openStore()
  const graph = randomGraph(seeded(42), { objects: 3_000, paddingBytes: 20 })
  for (let at = 0; at < graph.length; at += 1_000) await put(store, 'demo', graph.slice(at, at + 1_000))
  await store.close()
  for await (const entries of backend.records.range(keyBounds('pack', 'demo', 1))) {
    for (const { key, value } of entries) {
      const record = decodePackRecord(key, value)
      const owned = record.owned as Bitmap
      for (let ordinal = 0; ordinal < record.objects; ordinal += 3) owned.delete(ordinal)
      await putRecord(backend, key, encodePackRecord(key, { ...record, owned }))
    }
  }
  const { store: again } = await openStore(backend)
  const ids = graph.slice(100, 2_900).map(({ id }) => id)
  assert.deepEqual((await listed(again, 'demo', ids)).sort(), graph.slice(100, 2_900).map(lineOf).sort())
  await again.close()
})
