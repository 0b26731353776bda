import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { objectKeyMaker } from '../../src/store/records/keys.ts'
import { decodeObjectRecord, encodeObjectRecord } from '../../src/store/records/object-record.ts'
import {
  faulty,
  gate,
  hooked,
  type Image,
  imageOf,
  noFault,
  putBlob,
  putRecord,
  restore,
  writesIds,
} from './failures.ts'
import { randomGraph, referTo, seeded, shuffled, splitRandomly } from './graphs.ts'
import { assertSound, batchesOf, collected, download, findingsOf, type Made, never, openStore, put } from './support.ts'

const random = seeded(61)
const GRAPH: readonly Made[] = randomGraph(random, { objects: 1_060, paddingBytes: 40, missingPercent: 2 })

/**
 * A storage with a record and a blob of every kind: packs in records and in blobs, plans, a pack to apply, a removed
 * project, its tombstone.
 */
async function everything(): Promise<Image> {
  const inner = memoryBackend()
  const blocked = gate()
  const reached = gate()
  let isSweeping = true
  const { store } = await openStore(
    hooked(inner, async (call, key, work) => {
      if (writesIds(call, key) && key.endsWith('\0unapplied\0')) {
        reached.open()
        await blocked.opened
      }
      if (call === 'remove' && !isSweeping) throw new Error('the sweep is cut off')
      return work()
    }),
  )
  for (const objects of [GRAPH.slice(0, 40), shuffled(random, GRAPH)]) await put(store, 'demo', objects)
  await put(store, 'demo', [{ id: 'small', children: referTo(['root']) }])
  await download(store, 'demo', GRAPH[0].id)
  await store.idle()
  await put(store, 'gone', [{ id: 'a' }])
  isSweeping = false
  await store.remove('gone')
  await store.idle()
  const unapplied = put(store, 'demo', [{ id: 'unapplied' }])
  await reached.opened
  const image = await imageOf(inner)
  blocked.open()
  await unapplied
  return image
}

/** Records of a removed project that wait for the sweep may be as they are. */
function isSwept(key: Uint8Array): boolean {
  return /^[okw]\0gone\0/.test(Buffer.from(key).toString())
}

async function withDamage(image: Image, spoil: (backend: StorageBackend) => Promise<void>): Promise<StorageBackend> {
  const backend = await restore(memoryBackend(), image)
  await spoil(backend)
  return backend
}

async function damagesOf(backend: StorageBackend, sampleEvery?: number): Promise<string[]> {
  return (await findingsOf(backend, sampleEvery)).damages.map(({ subject, message }) => `${subject}: ${message}`)
}

function flip(bytes: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(bytes)
  copy[at] ^= 1 << (at % 8)
  return copy
}

/** Places in `length` bytes: all of few, some of many, and both ends. */
function placesIn(length: number, count: number): number[] {
  if (length <= count) return Array.from({ length }, (_, i) => i)
  return [...Array.from({ length: count - 1 }, (_, i) => Math.floor((i * length) / (count - 1))), length - 1]
}

test('a sound storage has no damage, and uploads in progress are noted', async () => {
  const image = await everything()
  const backend = await restore(memoryBackend(), image)
  const { damages, notes } = await findingsOf(backend)
  assert.deepEqual(damages, [])
  assert.ok(notes.some(({ message }) => message.includes('not applied yet')))
  const before = await imageOf(backend)
  assert.deepEqual(before, await imageOf(await restore(memoryBackend(), image)), 'a check changes nothing')
  await (await openStore(backend)).store.idle()
  assert.deepEqual((await findingsOf(backend)).notes, [])
})

test('every flipped bit of every record is found', async () => {
  const image = await everything()
  const kinds = new Map<string, number>()
  const chosen = image.records.filter(({ key }) => {
    if (isSwept(key)) return false
    const kind = String.fromCharCode(key[0])
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    return (kinds.get(kind) ?? 0) <= 3
  })
  assert.deepEqual([...kinds.keys()].sort(), ['g', 'h', 'k', 'l', 'o', 'p', 't', 'w'])
  const backend = await restore(memoryBackend(), image)
  for (const { key, value } of chosen) {
    for (const at of placesIn(value.length, 4)) {
      await putRecord(backend, key, flip(value, at))
      assert.notDeepEqual(
        await damagesOf(backend, 1_000),
        [],
        `record ${String.fromCharCode(key[0])}, byte ${at} of ${value.length}`,
      )
    }
    await putRecord(backend, key, value)
  }
  await assertSound(backend)
})

test('every missing record and blob is found', async () => {
  const image = await everything()
  const backend = await restore(memoryBackend(), image)
  const kinds = new Map<string, number>()
  for (const { key, value } of image.records) {
    const kind = String.fromCharCode(key[0])
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    // A plan that is gone is made again, missing totals are counted again, and of a removed project there is nothing
    // left to lose. A lease that is gone is free.
    if ('ptgl'.includes(kind) || isSwept(key) || (kinds.get(kind) ?? 0) > 5) continue
    await putRecord(backend, key, undefined)
    assert.notDeepEqual(await damagesOf(backend, 1_000), [], `record ${Buffer.from(key).toString()}`)
    await putRecord(backend, key, value)
  }
  for (const { name, bytes } of image.blobs) {
    if (name.includes('/tombstone-')) continue
    await backend.blobs.remove([name])
    assert.notDeepEqual(await damagesOf(backend), [], name)
    await putBlob(backend, name, bytes.subarray(0, bytes.length - 1))
    assert.notDeepEqual(await damagesOf(backend), [], `${name}, cut short`)
    await putBlob(backend, name, bytes)
  }
  await assertSound(backend)
})

test('every flipped bit of packs, plans and tombstones is found', async () => {
  const image = await everything()
  const backend = await restore(memoryBackend(), image)
  assert.equal(image.blobs.length, 3)
  for (const { name, bytes } of image.blobs) {
    for (const at of placesIn(bytes.length, 16)) {
      await putBlob(backend, name, flip(bytes, at))
      assert.notDeepEqual(await damagesOf(backend), [], `${name}: byte ${at} of ${bytes.length}`)
    }
    await putBlob(backend, name, bytes)
  }
  await assertSound(backend)
})

test('every flipped bit of a whole small pack is found, and no flip makes a wrong object', async () => {
  const { store, backend } = await openStore()
  const noise = (i: number): string =>
    Array.from({ length: 2_000 }, (_, k) => (((i * 7 + k) * 2_654_435_761) >>> 0).toString(36)).join('')
  const objects: Made[] = Array.from({ length: 6 }, (_, i) => ({
    id: `o${i}`,
    children: referTo([`o${i + 1}`]),
    noise: noise(i),
  }))
  await put(store, 'demo', objects)
  const whole = await download(store, 'demo', 'o0')
  const [blob] = (await imageOf(backend)).blobs
  assert.ok(blob !== undefined && blob.bytes.length > 49_152)
  const directoryStart = blob.bytes.length - 1_200
  for (const at of [...placesIn(directoryStart, 25), ...placesIn(1_200, 40).map((place) => directoryStart + place)]) {
    await putBlob(backend, blob.name, flip(blob.bytes, at))
    assert.notDeepEqual(await damagesOf(backend), [], `byte ${at} of ${blob.bytes.length}`)
    const reopened = await openStore(backend)
    try {
      assert.deepEqual((await download(reopened.store, 'demo', 'o0'))?.lines, whole?.lines, `byte ${at}`)
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'corrupt_data', String(error))
    }
    await reopened.store.close()
  }
})

test('a sample reads only some blocks, but tables and records whole', async () => {
  const { store, backend } = await openStore()
  const big = randomGraph(seeded(8), { objects: 1_000, paddingBytes: 2_000 })
  await put(store, 'demo', big)
  const [{ name, bytes }] = (await imageOf(backend)).blobs
  let found = 0
  const places = Array.from({ length: 20 }, (_, i) => Math.floor(bytes.length * 0.04 * (i + 1)))
  for (const at of places) {
    await putBlob(backend, name, flip(bytes, at))
    if ((await damagesOf(backend, 4)).length > 0) found++
  }
  assert.ok(found > 0 && found < places.length, `${found} of ${places.length}`)
})

test('each kind of damage is reported by its kind', async () => {
  const image = await everything()
  const keyOf = (kind: string): Uint8Array =>
    image.records.findLast(({ key }) => String.fromCharCode(key[0]) === kind && !isSwept(key))?.key as Uint8Array
  const messages = async (spoil: (backend: StorageBackend) => Promise<void>): Promise<string> =>
    (await damagesOf(await withDamage(image, spoil))).join('\n')
  assert.match(await messages((backend) => putRecord(backend, keyOf('o'), undefined)), /object "\w+" has no record/)
  assert.match(
    await messages((backend) => putRecord(backend, keyOf('k'), undefined)),
    /the record of a pack is missing/,
  )
  assert.match(await messages((backend) => putRecord(backend, keyOf('w'), undefined)), /its mark is missing/)
  assert.match(await messages((backend) => putRecord(backend, Buffer.from('h\0demo\0'), undefined)), /has no record/)
})

test('an object whose record names a pack that does not own it is found', async () => {
  const { store, backend } = await openStore()
  const all = gate()
  let ready = 0
  const together = async function* (object: Made): AsyncGenerator<ObjectBatch> {
    yield* batchesOf([object])
    if (++ready === 2) all.open()
    await all.opened
  }
  await Promise.all([1, 2].map((text) => store.put('demo', together({ id: 'a', text }), { signal: never })))
  await assertSound(backend)
  const key = objectKeyMaker('demo', 1)(Buffer.from('a'))
  const [value] = await backend.records.getMany([key])
  assert.ok(value !== undefined)
  const location = decodeObjectRecord(key, value)
  await putRecord(backend, key, encodeObjectRecord(key, { ...location, sequence: 3 - location.sequence }))
  const damages = await damagesOf(backend)
  assert.ok(
    damages.some((message) => message.includes('which does not own it')) &&
      damages.some((message) => message.includes('points elsewhere')),
    damages.join('\n'),
  )
  await putRecord(backend, key, encodeObjectRecord(key, { ...location, ordinal: 1 }))
  assert.ok((await damagesOf(backend)).some((message) => message.includes('beyond the end')))
})

test('an unreadable storage is an error of the check, not a finding', async () => {
  const image = await everything()
  const inner = await restore(memoryBackend(), image)
  for (let at = 0; ; at += 3) {
    const fault = Object.assign(noFault(), { at })
    const run = collected(checkStore(asGuarded(faulty(inner, fault))))
    if (
      fault.at !== undefined &&
      (await run.then(
        () => true,
        (error: unknown) => error,
      )) === true
    ) {
      assert.ok(fault.calls <= at)
      break
    }
    await assert.rejects(run, { code: 'storage_unavailable' })
  }
  await assert.rejects(collected(checkStore(inner, { signal: AbortSignal.abort(new Error('stopped')) })), /stopped/)
})

test('every kind of upload leaves a sound storage', async () => {
  const { store, backend } = await openStore()
  await Promise.all(
    splitRandomly(random, shuffled(random, GRAPH), 10).map((objects) => put(store, 'demo', [...objects, GRAPH[0]])),
  )
  await put(store, 'demo', [])
  await put(store, 'other', [GRAPH[0], GRAPH[0]])
  await download(store, 'demo', GRAPH[0].id)
  await store.idle()
  await assertSound(backend)
})
