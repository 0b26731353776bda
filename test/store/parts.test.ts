import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { StowageError } from '../../src/errors.ts'
import { Bitmap } from '../../src/store/bytes/bitmap.ts'
import { ByteCache } from '../../src/memory/byte-cache.ts'
import type { CommittedPack } from '../../src/store/records/committed-pack.ts'
import { hashBytes } from '../../src/object/id-hash.ts'
import { LocationIndex } from '../../src/store/closure/location-index.ts'
import { StoredIds } from '../../src/store/pack/stored-ids.ts'
import { LocationSlots } from '../../src/store/closure/location-slots.ts'
import type { ByteTable } from '../../src/store/pack/pack-format.ts'
import { readAhead } from '../../src/store/bytes/read-ahead.ts'
import { Yielder } from '../../src/async/yielder.ts'
import { SingleFlight } from '../../src/async/single-flight.ts'
import { UnappliedPacks } from '../../src/store/ingest/unapplied-packs.ts'
import { gate } from './failures.ts'
import { collected, never } from './support.ts'
import { turns } from '../support/patience.ts'

test('a cache keeps recently used values under its bound, and loads once for all callers', async () => {
  const cache = new ByteCache<string>(30, (value) => value.length)
  let loads = 0
  const get = (key: string, value = key.repeat(10)): Promise<string> =>
    cache.get(key, () => Promise.resolve((loads++, value)))
  assert.deepEqual(
    await Promise.all([get('a'), get('a'), get('b'), get('c')]),
    ['a', 'a', 'b', 'c'].map((key) => key.repeat(10)),
  )
  assert.equal(loads, 3)
  await get('a')
  await get('d')
  assert.equal(cache.heldBytes, 30)
  await get('a')
  assert.equal(loads, 4, 'a was used again and stayed')
  await get('b')
  assert.equal(loads, 5, 'b was the oldest and went')
  await get('huge', 'x'.repeat(100))
  assert.ok(cache.heldBytes <= 30)
  cache.clear()
  assert.equal(cache.heldBytes, 0)
})

test('a value that fails to load is not cached, and a replaced one is not deleted', async () => {
  const cache = new ByteCache<string>(100, (value) => value.length)
  await assert.rejects(
    cache.get('a', () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  const first = cache.get('a', () => Promise.resolve('first'))
  await first
  cache.delete('a')
  const second = cache.get('a', () => Promise.resolve('second!'))
  await second
  cache.delete('a', first)
  assert.equal(await cache.get('a', () => Promise.resolve('third')), 'second!')
  cache.delete('a', second)
  assert.equal(cache.heldBytes, 0)
  assert.equal(await cache.get('a', () => Promise.resolve('third')), 'third')
})

test('a value that is deleted or cleared while it loads is not counted', async () => {
  const cache = new ByteCache<string>(100, (value) => value.length)
  const loading = gate()
  const value = cache.get('a', () => loading.opened.then(() => 'late'))
  cache.clear()
  loading.open()
  assert.equal(await value, 'late')
  assert.equal(cache.heldBytes, 0)
})

test('one run serves all callers, is aborted when the last one leaves, and starts anew for a later one', async () => {
  const tasks = new SingleFlight<number>()
  let runs = 0
  const task = async (signal: AbortSignal): Promise<number> => {
    const run = ++runs
    await nextTurn(undefined, { signal })
    return run
  }
  const [first, second] = [new AbortController(), new AbortController()]
  const left = tasks.run('a', first.signal, task)
  const stays = tasks.run('a', second.signal, task)
  const other = tasks.run('b', never, task)
  first.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  assert.equal(await stays, 1)
  assert.equal(await other, 2)
  const alone = new AbortController()
  let wasAborted = false
  const leaving = tasks.run('a', alone.signal, (signal) => {
    signal.addEventListener('abort', () => (wasAborted = true))
    return task(signal)
  })
  alone.abort(new Error('gone'))
  await assert.rejects(leaving, /gone/)
  assert.equal(wasAborted, true)
  assert.equal(await tasks.run('a', never, task), 4)
  await assert.rejects(
    tasks.run('a', never, () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  await assert.rejects(tasks.run('a', AbortSignal.abort(new Error('gone')), task), /gone/)
})

function tableOf(ids: readonly string[]): ByteTable {
  const bytes = Uint8Array.from(Buffer.from(ids.join('')))
  let end = 0
  return { ends: Uint32Array.from(ids, (id) => (end += Buffer.byteLength(id))), bytes }
}

/** Memory for an index, as much as there is. */
class FreeMemory {
  readonly bufferPool: BufferPool = new BufferPool(0)
  freeBytes: number
  /** The sizes of what was held, one after the other. */
  readonly held: number[] = []

  constructor(freeBytes: number) {
    this.freeBytes = freeBytes
  }

  tryHold(bytes: number): boolean {
    if (bytes > this.freeBytes) return false
    this.freeBytes -= bytes
    this.held.push(bytes)
    return true
  }

  free(bytes: number): void {
    this.freeBytes += bytes
  }
}

const hashOf = (id: string): number => {
  const bytes = Buffer.from(id)
  return hashBytes(bytes, 0, bytes.length, REAL_ENVIRONMENT.hashKey)
}

test('an index omits packs without memory, and is empty once dropped', async () => {
  const memory = new FreeMemory(170_000)
  const index = new LocationIndex<string>(REAL_ENVIRONMENT.hashKey, memory, 2)
  const yielder = new Yielder(REAL_ENVIRONMENT)
  const idsOf = (pack: string): string[] => Array.from({ length: 4_000 }, (_, i) => `${pack} ${i}`)
  const add = (pack: string): Promise<boolean> =>
    index.add(pack, tableOf(idsOf(pack)), { owned: Bitmap.full(4_000), sources: [] }, yielder)
  assert.deepEqual(await Promise.all(['one', 'two', 'three'].map(add)), [true, true, false])
  const find = (id: string): string | undefined => {
    let found: string | undefined
    index.find(hashOf(id), Buffer.from(id), 0, id.length, (pack, ordinal) => (found = `${pack} ${ordinal}`))
    return found
  }
  assert.deepEqual(['one 0', 'two 3999', 'three 7'].map(find), ['one 0', 'two 3999', undefined])
  assert.ok(memory.freeBytes >= 0)
  index.drop()
  assert.deepEqual(['one 0', 'two 3999'].map(find), [undefined, undefined])
  assert.equal(await add('one'), false)
})

test('an index finds ids that are stored in 16 bytes each, beside ids that are stored as text', async () => {
  const index = new LocationIndex<string>(REAL_ENVIRONMENT.hashKey, new FreeMemory(Infinity), 2)
  const yielder = new Yielder(REAL_ENVIRONMENT)
  const idsOf = (pack: string): string[] => Array.from({ length: 1_500 }, (_, i) => `${pack}${i}`.padStart(32, '0'))
  const packed = Buffer.from(idsOf('a').join(''), 'hex')
  assert.ok(await index.add('stored', new StoredIds(packed), { owned: Bitmap.full(1_500), sources: [] }, yielder))
  assert.ok(await index.add('text', tableOf(idsOf('b')), { owned: Bitmap.full(1_500), sources: [] }, yielder))
  const find = (id: string): string | undefined => {
    let found: string | undefined
    index.find(hashOf(id), Buffer.from(id), 0, id.length, (pack, ordinal) => (found = `${pack} ${ordinal}`))
    return found
  }
  assert.deepEqual(
    idsOf('a').map(find),
    idsOf('a').map((_, i) => `stored ${i}`),
  )
  assert.deepEqual(
    idsOf('b').map(find),
    idsOf('b').map((_, i) => `text ${i}`),
  )
  assert.deepEqual(idsOf('c').map(find), Array<undefined>(1_500).fill(undefined))
})

test('an index of many packs finds all of them, with room made before or not', async () => {
  const yielder = new Yielder(REAL_ENVIRONMENT)
  const idOf = (pack: number, ordinal: number): string => `${pack}/${ordinal}`.padStart(32, '0').replace('/', 'a')
  for (const isReserved of [false, true]) {
    const memory = new FreeMemory(2_000_000)
    const index = new LocationIndex<number>(REAL_ENVIRONMENT.hashKey, memory, 120)
    for (let pack = 0; pack < 120; pack++) {
      if (isReserved && pack === 20) assert.equal(await index.reserve(100, yielder), true)
      const ids = Array.from({ length: 301 }, (_, ordinal) => idOf(pack, ordinal))
      const owned = Bitmap.full(301)
      owned.delete(300)
      assert.equal(await index.add(pack, tableOf(ids), { owned, sources: [] }, yielder), true)
    }
    assert.equal(await index.reserve(10_000, yielder), false, 'more than there is memory for')
    const find = (pack: number, ordinal: number): [number, number] | undefined => {
      const id = idOf(pack, ordinal)
      let found: [number, number] | undefined
      index.find(hashOf(id), Buffer.from(id), 0, id.length, (...place) => (found = place))
      return found
    }
    for (let pack = 0; pack < 120; pack++) {
      for (let ordinal = 0; ordinal < 300; ordinal++) assert.deepEqual(find(pack, ordinal), [pack, ordinal])
      assert.equal(find(pack, 300), undefined, 'an object that another pack owns')
    }
    const tables = memory.held.filter((bytes) => bytes % (301 * (32 + 4)) !== 0)
    assert.ok(tables.length <= 3, `tables of ${tables.join(', ')} bytes: each is filled anew`)
    // Pieces for ids are as large as what is held already.
    const idsBytes = 2 * 120 * 301 * 16
    const slotsBytesMax = ((120 * 300) / 0.75) * 1.5 * 4
    assert.ok(2_000_000 - memory.freeBytes <= idsBytes + slotsBytesMax, `${memory.freeBytes} bytes are free`)
  }
})

test('an index of merged packs makes room for as many objects as their sources can have held', async () => {
  const memory = new FreeMemory(Infinity)
  const index = new LocationIndex<number>(REAL_ENVIRONMENT.hashKey, memory, 10 * 101)
  const sources = Array.from({ length: 100 }, (_, i) => i)
  const facts = { owned: Bitmap.full(3_000), sources }
  for (let pack = 0; pack < 10; pack++) {
    const ids = Array.from({ length: 3_000 }, (_, ordinal) => `${pack}/${ordinal}`)
    assert.equal(await index.add(pack, tableOf(ids), facts, new Yielder(REAL_ENVIRONMENT)), true)
  }
  assert.ok(Math.max(...memory.held) <= LocationSlots.memoryBytes(1.5 * 30_000), memory.held.join(', '))
})

test('an index that is dropped gives all of its memory back, that of a pack that is being added when that ends', async () => {
  const bufferPool = new BufferPool(10_000_000)
  const memory = { bufferPool, tryHold: () => true, free: () => undefined }
  const index = new LocationIndex<number>(REAL_ENVIRONMENT.hashKey, memory, 3)
  const ids = tableOf(Array.from({ length: 5_000 }, (_, i) => `${i}`.padStart(32, '0')))
  const add = (pack: number): Promise<boolean> =>
    index.add(pack, ids, { owned: Bitmap.full(5_000), sources: [] }, new Yielder(REAL_ENVIRONMENT))
  assert.ok(await add(0))
  const adding = add(1)
  index.drop()
  const idleBytes = bufferPool.idleBytes
  assert.equal(await adding, false)
  assert.ok(bufferPool.idleBytes > idleBytes, 'the ids come back once nothing is added any more')
  assert.ok(bufferPool.idleBytes >= 5_000 * (16 + 4 / 0.75))
  index.drop()
  assert.equal(await add(2), false)
})

test('slots compare only ids whose hashes match in the bits beside the number, and wrap around', () => {
  const slots = new LocationSlots(3_000, 2 ** 20 - 1)
  assert.deepEqual([slots.objectsMax, slots.numbersMax, slots.memoryBytes], [3_072, 2 ** 20 - 1, 4 * 4_096])
  const numbers = (hash: number): number[] => {
    const all: number[] = []
    for (let slot = slots.first(hash); slot !== -1; slot = slots.next(hash, slot)) all.push(slots.numberIn(slot))
    return all
  }
  const last = 2 ** 32 - 1
  slots.put(last, 0)
  slots.put(last, 2 ** 20 - 2)
  slots.put(last - 1, 7)
  slots.put(1, 8)
  assert.deepEqual([last, last - 1, 1, 2].map(numbers), [[0, 2 ** 20 - 2], [7], [8], []])
  assert.deepEqual(numbers(0), [], 'a free slot ends the search')
})

test('an index finds each id only in the pack that owns it', async () => {
  const hex = (name: string): string => createHash('md5').update(name).digest('hex')
  const index = new LocationIndex<number>(REAL_ENVIRONMENT.hashKey, new FreeMemory(Infinity), 5)
  const yielder = new Yielder(REAL_ENVIRONMENT)
  const packs = [
    Array.from({ length: 3_000 }, (_, i) => hex(`a${i}`)),
    [],
    Array.from({ length: 3_000 }, (_, i) => `plain ${i} ä`),
    ['x'.repeat(512), 'é', hex('upper').toUpperCase(), hex('mixed'), '0'.repeat(31), '0'.repeat(33)],
    Array.from({ length: 50 }, (_, i) => hex(`b${i}`)),
  ]
  for (const [pack, ids] of packs.entries()) {
    const owned = Bitmap.full(ids.length)
    if (pack === 0) owned.delete(7)
    assert.equal(await index.add(pack, tableOf(ids), { owned, sources: [] }, yielder), true)
  }
  const find = (id: string): string => {
    let place = 'nowhere'
    const isFound = index.find(
      hashOf(id),
      Buffer.from(id),
      0,
      Buffer.byteLength(id),
      (pack, ordinal) => (place = `${pack}:${ordinal}`),
    )
    assert.equal(isFound, place !== 'nowhere')
    return place
  }
  for (const [pack, ids] of packs.entries()) {
    for (const [ordinal, id] of ids.entries())
      assert.equal(find(id), pack === 0 && ordinal === 7 ? 'nowhere' : `${pack}:${ordinal}`)
  }
  for (const id of [
    hex('c'),
    hex('a1').toUpperCase(),
    hex('upper'),
    'plain',
    '',
    'e',
    '0'.repeat(32),
    `${hex('a1').slice(0, 31)}g`,
  ])
    assert.equal(find(id), 'nowhere')
})

test('reading ahead keeps the order and its bounds', async () => {
  let underWay = 0
  let most = 0
  let mostBytes = 0
  let bytes = 0
  const load = async (item: number): Promise<number> => {
    most = Math.max(most, ++underWay)
    mostBytes = Math.max(mostBytes, (bytes += item))
    await turns(1 + (item % 3))
    underWay--
    bytes -= item
    return item
  }
  const items = Array.from({ length: 40 }, (_, i) => (i * 7) % 11)
  assert.deepEqual(await collected(readAhead(items, { count: 4 }, load)), items)
  assert.ok(most > 1 && most <= 4)
  mostBytes = 0
  assert.deepEqual(await collected(readAhead(items, { count: 40, bytes: 12, bytesOf: (item) => item }, load)), items)
  assert.ok(mostBytes <= 12, `${mostBytes}`)
  assert.deepEqual(
    await collected(readAhead([100, 1], { count: 4, bytes: 12, bytesOf: (item) => item }, load)),
    [100, 1],
  )
})

test('reading ahead passes the first error on in its place, and closes its source', async () => {
  let isClosed = false
  const source = async function* (): AsyncGenerator<number> {
    try {
      for (let i = 0; ; i++) yield i
    } finally {
      isClosed = true
    }
  }
  const got: number[] = []
  const load = (item: number): Promise<number> =>
    item >= 5 ? Promise.reject(new Error(`broken ${item}`)) : Promise.resolve(item)
  await assert.rejects(async () => {
    for await (const item of readAhead(source(), { count: 3 }, load)) got.push(item)
  }, /broken 5/)
  assert.deepEqual(got, [0, 1, 2, 3, 4])
  assert.equal(isClosed, true)
  isClosed = false
  for await (const item of readAhead(source(), { count: 3 }, load)) if (item === 1) break
  await nextTurn()
  assert.equal(isClosed, true)
})

test('packs that failed to apply are retried, unless that is useless', async () => {
  const packOf = (projectId: string): CommittedPack => ({
    projectId,
    generation: 1,
    sequence: 1,
    record: {} as CommittedPack['record'],
  })
  const trouble = new Map<string, StowageError>([
    ['busy', new StowageError('storage_unavailable', 'try again')],
    ['damaged', new StowageError('corrupt_data', 'it is damaged')],
    ['removed', new StowageError('project_removed', 'it was removed')],
  ])
  const tried: string[] = []
  const packs = new UnappliedPacks(({ projectId }) => {
    tried.push(projectId)
    const error = trouble.get(projectId)
    return error === undefined ? Promise.resolve() : Promise.reject(error)
  })
  for (const projectId of ['fine', 'removed', 'damaged', 'busy']) packs.add(packOf(projectId))
  await assert.rejects(packs.applyAll(), { code: 'corrupt_data' })
  await assert.rejects(packs.applyAll(), { code: 'storage_unavailable' })
  assert.equal(packs.size, 1)
  trouble.clear()
  await packs.applyAll()
  assert.equal(packs.size, 0)
  assert.deepEqual(tried, ['fine', 'removed', 'damaged', 'busy', 'busy'])
})
