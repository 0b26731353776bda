import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import { ByteCache } from '../../src/store/byte-cache.ts'
import { readAhead } from '../../src/store/read-ahead.ts'
import { SharedTasks } from '../../src/store/shared-task.ts'
import { gate } from './failures.ts'
import { collected, never } from './support.ts'

test('a cache keeps what was used last, under its bound, and loads once for all who ask', async () => {
  const cache = new ByteCache<string>(30, (value) => value.length)
  let loads = 0
  const get = (key: string, value = key.repeat(10)): Promise<string> => cache.get(key, () => Promise.resolve((loads++, value)))
  assert.deepEqual(await Promise.all([get('a'), get('a'), get('b'), get('c')]), ['a', 'a', 'b', 'c'].map((key) => key.repeat(10)))
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

test('a value that fails to load is not kept, and one that was replaced is not deleted', async () => {
  const cache = new ByteCache<string>(100, (value) => value.length)
  await assert.rejects(cache.get('a', () => Promise.reject(new Error('broken'))), /broken/)
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

test('a value that is deleted or cleared while it is loaded is not counted', async () => {
  const cache = new ByteCache<string>(100, (value) => value.length)
  const loading = gate()
  const value = cache.get('a', () => loading.opened.then(() => 'late'))
  cache.clear()
  loading.open()
  assert.equal(await value, 'late')
  assert.equal(cache.heldBytes, 0)
})

test('one run serves all; it is aborted when the last one has left, and a later one begins anew', async () => {
  const tasks = new SharedTasks<number>()
  let runs = 0
  const task = async (signal: AbortSignal): Promise<number> => {
    const run = ++runs
    await delay(10, undefined, { signal })
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
  await assert.rejects(tasks.run('a', never, () => Promise.reject(new Error('broken'))), /broken/)
  await assert.rejects(tasks.run('a', AbortSignal.abort(new Error('gone')), task), /gone/)
})

test('reading ahead keeps the order and its bounds', async () => {
  let underWay = 0
  let most = 0
  let mostBytes = 0
  let bytes = 0
  const load = async (item: number): Promise<number> => {
    most = Math.max(most, ++underWay)
    mostBytes = Math.max(mostBytes, (bytes += item))
    await delay(item % 3)
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
  assert.deepEqual(await collected(readAhead([100, 1], { count: 4, bytes: 12, bytesOf: (item) => item }, load)), [100, 1])
})

test('reading ahead passes the first error on, in its place, and closes what it reads from', async () => {
  let isClosed = false
  const source = async function* (): AsyncGenerator<number> {
    try {
      for (let i = 0; ; i++) yield i
    } finally {
      isClosed = true
    }
  }
  const got: number[] = []
  const load = (item: number): Promise<number> => (item >= 5 ? Promise.reject(new Error(`broken ${item}`)) : Promise.resolve(item))
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
