import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { ReadBuffers } from '../../src/memory/read-buffers.ts'
import { WalkTables } from '../../src/store/closure/walk-tables.ts'
import { type Pack, PackCatalog } from '../../src/store/records/pack-catalog.ts'
import { viewProject } from '../../src/store/records/projects.ts'
import { collected, type Made, never, openStore, put, undying } from './support.ts'

/** A catalogue over a store with one pack that is a blob of its own. */
async function storedPack(): Promise<{ catalog: PackCatalog; pack: Pack; reads: () => number }> {
  const backend = undying(memoryBackend())
  const opened = await openStore(backend)
  const objects = Array.from({ length: 3_000 }, (_, i): Made => ({ id: `object-${i}` }))
  await put(opened.store, 'demo', objects, 3_000)
  await opened.store.close()
  let reads = 0
  const blobs: typeof backend.blobs = Object.create(backend.blobs, {
    read: {
      value: (...args: Parameters<typeof backend.blobs.read>) => {
        reads++
        return backend.blobs.read(...args)
      },
    },
  })
  const catalog = new PackCatalog({ records: backend.records, blobs, environment: REAL_ENVIRONMENT }, 1_000_000)
  const project = await viewProject(backend.records, 'demo')
  assert.ok(project !== undefined)
  const [pack] = await collected(catalog.packsFrom(project, 0, never))
  assert.ok(pack.record.content === 'blob' && pack.record.objects === 3_000)
  return { catalog, pack, reads: () => reads }
}

test('tables that are lent are whole, stay out of the cache, and the same ones come from it', async () => {
  const { catalog, pack, reads } = await storedPack()
  const buffers = new ReadBuffers(1_000_000)
  const lent = (): Promise<string> =>
    catalog.withTables(
      pack,
      buffers,
      async ({ ids }) => await Promise.resolve(Buffer.from(ids.bytes).toString('latin1')),
    )
  const first = await lent()
  assert.equal(await lent(), first)
  assert.equal(reads(), 2)
  const cached = await catalog.tables(pack)
  assert.equal(Buffer.from(cached.ids.bytes).toString('latin1'), first)
  assert.equal(await lent(), first)
  assert.equal(reads(), 3)
  await assert.rejects(
    catalog.withTables(pack, buffers, () => Promise.reject(new Error('of the user'))),
    /of the user/,
  )
})

test('a walk through many objects reads tables past the cache, except those that it needs again and again', async () => {
  const calls: string[] = []
  const tables = new WalkTables({
    tables: (pack) => (calls.push(`kept ${pack.sequence}`), Promise.resolve({} as never)),
    withTables: async (pack, _buffers, use) => (calls.push(`lent ${pack.sequence}`), await use({} as never)),
  })
  const read = async (sequence: number, objects: number): Promise<void> =>
    tables.lend({ sequence, record: { packId: String(sequence), objects } } as Pack, () => Promise.resolve())
  for (let again = 0; again < 6; again++) await read(1, 100_000)
  await read(2, 100_000)
  for (let again = 0; again < 6; again++) await read(3, 1_000)
  assert.deepEqual(calls, [
    ...Array<string>(6).fill('kept 1'),
    'lent 2',
    ...Array<string>(4).fill('lent 3'),
    ...Array<string>(2).fill('kept 3'),
  ])
})
