import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { ObjectCursor, ObjectPage } from '../../src/object/graph-store.ts'
import type { StorageBackend } from '../../src/storage/index.ts'
import { EXPORT_POINTS_MAX, SETTLED_EPOCHS } from '../../src/store/records/export-points.ts'
import { exportPointKey, keyBounds } from '../../src/store/records/keys.ts'
import type { PackStore } from '../../src/store/pack-store.ts'
import { reindexStore } from '../../src/store/upkeep/reindex.ts'
import { coldCopy } from '../support/cold-copy.ts'
import { compact, PROJECT } from './compact/support.ts'
import { hooked } from './failures.ts'
import { collected, idOfLine, never, openStore, put, readLines } from './support.ts'

const NO_ROOTS = { roots: [] }

async function page(store: PackStore, after?: ObjectCursor, until?: ObjectCursor): Promise<ObjectPage> {
  const read = await store.pager.page(PROJECT, {
    textBytesMax: 100_000,
    signal: never,
    ...(after && { after }),
    ...(until && { until }),
  })
  assert.ok(read !== undefined)
  return read
}

/** The ids after a place, and the end. */
async function run(
  store: PackStore,
  after?: ObjectCursor,
): Promise<{ readonly ids: string[]; readonly end: ObjectCursor }> {
  const { selection, end } = await page(store, after)
  const ids = (await readLines(selection)).map(idOfLine)
  selection.release()
  return { ids, end }
}

async function pointsOf({ records }: StorageBackend): Promise<number> {
  return (await collected(records.range(keyBounds('exportPoint', PROJECT, 1)))).flat().length
}

test('a point is written for each change, and once more when a day has passed', async () => {
  const { store, backend } = await openStore()
  await put(store, PROJECT, [{ id: 'a' }])
  const first = await run(store)
  assert.deepEqual((await run(store, first.end)).end, first.end)
  for (let epoch = 0; epoch <= SETTLED_EPOCHS + 2; epoch++) await store.epochs.advance()
  const settled = await run(store)
  assert.ok(settled.end.epoch > first.end.epoch)
  for (let epoch = 0; epoch <= 2 * SETTLED_EPOCHS; epoch++) await store.epochs.advance()
  assert.deepEqual((await run(store)).end, settled.end)
  await put(store, PROJECT, [{ id: 'b' }])
  assert.deepEqual((await run(store, settled.end)).ids, ['b'])
  assert.equal(await pointsOf(backend), 3)
  await store.close()
})

test('the oldest point goes when there are too many, and all go with their project', async () => {
  const { store, backend } = await openStore()
  await put(store, PROJECT, [{ id: 'a' }])
  const { end } = await run(store)
  // The next point has the number at which the first one goes.
  const key = exportPointKey(PROJECT, 1, EXPORT_POINTS_MAX)
  await backend.records.insertMany([{ key, value: new Uint8Array() }])
  await put(store, PROJECT, [{ id: 'b' }])
  const { point } = (await run(store)).end
  assert.equal(point.number, EXPORT_POINTS_MAX + 1)
  await assert.rejects(run(store, end), { code: 'conflict' })
  await store.remove(PROJECT)
  await store.idle()
  assert.equal(await pointsOf(backend), 0)
  await store.close()
})

test('a history that was put back accepts no cursor of the lost one, neither at the same numbers nor after merges', async () => {
  const first = await openStore()
  await put(first.store, PROJECT, [{ id: 'a' }])
  const shared = await run(first.store)
  const cold = await coldCopy(first.backend)
  await put(first.store, PROJECT, [{ id: 'b' }])
  const lost = await run(first.store)
  await first.store.close()

  const second = await openStore(cold)
  await put(second.store, PROJECT, [{ id: 'c' }])
  await assert.rejects(run(second.store, lost.end), { code: 'conflict' })
  await assert.rejects(page(second.store, shared.end, lost.end), { code: 'conflict' })
  // The numbers and the layout are those of the lost point, and so is the number of its successor.
  const other = await run(second.store, shared.end)
  assert.deepEqual({ ...other.end, point: undefined }, { ...lost.end, point: undefined })
  assert.deepEqual(other.ids, ['c'])
  await compact(second.store, NO_ROOTS, { all: true })
  await assert.rejects(run(second.store, lost.end), { code: 'conflict' })
  await second.store.close()
})

/** The lost history differs in nothing but the time that passed: its cursor would pass for settled too early. */
test('a history that was put back is another one, though nothing was uploaded to the lost one', async () => {
  const first = await openStore()
  await put(first.store, PROJECT, [{ id: 'a' }])
  const cold = await coldCopy(first.backend)
  for (let epoch = 0; epoch <= 2 * SETTLED_EPOCHS; epoch++) await first.store.epochs.advance()
  const lost = await run(first.store)
  await first.store.close()

  const second = await openStore(cold)
  await put(second.store, PROJECT, [{ id: 'b' }])
  await compact(second.store, NO_ROOTS, { all: true })
  await assert.rejects(run(second.store, lost.end), { code: 'conflict' })
  await second.store.close()
})

test('cursors outlive merges and the packs that those replace, and end with a reindex', async () => {
  const { store, backend, reopen } = await openStore()
  await put(store, PROJECT, [{ id: 'a' }])
  const { end } = await run(store)
  await put(store, PROJECT, [{ id: 'b' }])
  await compact(store, NO_ROOTS, { all: true })
  for (let epoch = 0; epoch <= 2 * SETTLED_EPOCHS; epoch++) await store.epochs.advance()
  await store.compactor.dropRetired(PROJECT, () => true, never)
  await put(store, PROJECT, [{ id: 'c' }])
  assert.deepEqual(new Set((await run(store, end)).ids.filter((id) => id !== 'a')), new Set(['b', 'c']))
  await collected(reindexStore(backend))
  const reopened = await reopen()
  await assert.rejects(run(reopened.store, end), { code: 'conflict' })
  await reopened.store.close()
})

test('a storage that takes no writes can be exported, and a damaged point costs one export', async () => {
  const backend = memoryBackend()
  let isFull = false
  const { store } = await openStore(
    hooked(backend, (call, key, work) =>
      isFull && call === 'commit' && key.startsWith('s\0') ? Promise.reject(new Error('full')) : work(),
    ),
  )
  await put(store, PROJECT, [{ id: 'a' }])
  isFull = true
  const { ids, end } = await run(store)
  assert.deepEqual(ids, ['a'])
  assert.deepEqual((await run(store, end)).ids, [])
  const other = await openStore(backend)
  await assert.rejects(run(other.store, end), { code: 'conflict' })
  isFull = false
  const written = await run(store)
  const key = exportPointKey(PROJECT, 1, written.end.point.number)
  await backend.records.commit({ put: [{ key, value: Buffer.from('damaged') }] })
  await assert.rejects(run(store, written.end), { code: 'conflict' })
  assert.equal((await run(store)).end.point.number, written.end.point.number + 1)
  await store.close()
  await other.store.close()
})
