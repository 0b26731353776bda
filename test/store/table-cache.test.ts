import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import type { DecodedTables } from '../../src/store/pack/stored-tables.ts'
import { TableCache } from '../../src/store/records/table-cache.ts'

const BYTES = 100_000

/** Tables in memory of the pool, of which only the size matters. */
function tablesOf(pool: BufferPool): () => Promise<DecodedTables> {
  return () => {
    const memory = pool.takeAny(BYTES)
    return Promise.resolve({ tables: { lineBytes: memory } as never, memory })
  }
}

test('the memory of forgotten tables is used again once all who borrowed them are done', async () => {
  const pool = new BufferPool(10 * BYTES)
  const cache = new TableCache(BYTES * 2, pool)
  const load = tablesOf(pool)
  const first = await cache.borrow('a', load)
  const again = await cache.borrow('a', load)
  assert.equal(again.tables, first.tables)
  await cache.borrow('b', load).then(({ giveBack }) => giveBack())
  assert.equal(pool.idleBytes, 0)
  assert.ok(cache.has('b') && !cache.has('a'))
  first.giveBack()
  assert.equal(pool.idleBytes, 0)
  again.giveBack()
  assert.ok(pool.idleBytes >= BYTES)
})

test('tables that are too large for the cache stay with who borrowed them', async () => {
  const pool = new BufferPool(10 * BYTES)
  const cache = new TableCache(1, pool)
  const { giveBack } = await cache.borrow('a', tablesOf(pool))
  assert.ok(!cache.has('a'))
  assert.equal(pool.idleBytes, 0)
  giveBack()
  assert.ok(pool.idleBytes >= BYTES)
})

test('tables of a caller that cannot say when it is done are left to the collector', async () => {
  const pool = new BufferPool(10 * BYTES)
  const cache = new TableCache(1, pool)
  const [{ giveBack }] = await Promise.all([cache.borrow('a', tablesOf(pool)), cache.get('a', tablesOf(pool))])
  giveBack()
  cache.clear()
  assert.equal(pool.idleBytes, 0)
})

test('who waits for tables that cannot be loaded gets the error, and the next one tries again', async () => {
  const pool = new BufferPool(10 * BYTES)
  const cache = new TableCache(1, pool)
  await assert.rejects(
    cache.borrow('a', () => Promise.reject(new Error('away'))),
    /away/,
  )
  const { giveBack } = await cache.borrow('a', tablesOf(pool))
  giveBack()
  assert.ok(pool.idleBytes >= BYTES)
})
