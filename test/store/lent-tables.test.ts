import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { BufferPool } from '../../src/memory/buffer-pool.ts'
import { LentTables } from '../../src/store/closure/lent-tables.ts'
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
  const parts = {
    records: backend.records,
    blobs,
    environment: REAL_ENVIRONMENT,
    bufferPool: new BufferPool(1_000_000),
  }
  const catalog = new PackCatalog(parts, 1_000_000)
  const project = await viewProject(backend.records, 'demo')
  assert.ok(project !== undefined)
  const [pack] = await collected(catalog.packsFrom(project, 0, never))
  assert.ok(pack.record.content === 'blob' && pack.record.objects === 3_000)
  return { catalog, pack, reads: () => reads }
}

test('tables that are lent are whole, stay out of the cache, and the same ones come from it', async () => {
  const { catalog, pack, reads } = await storedPack()
  const lent = async (): Promise<string> => {
    const { tables, giveBack } = await catalog.borrowTables(pack)
    const ids = Buffer.from(tables.ids.bytes).toString('latin1')
    giveBack()
    return ids
  }
  const first = await lent()
  assert.equal(await lent(), first)
  assert.equal(reads(), 2)
  const cached = await catalog.tables(pack)
  assert.equal(Buffer.from(cached.ids.bytes).toString('latin1'), first)
  assert.equal(await lent(), first)
  assert.equal(reads(), 3)
})

test('large tables are left in the cache for those who share them', async () => {
  const calls: string[] = []
  const source: ConstructorParameters<typeof LentTables>[0] = {
    sharedTables: (pack) => {
      calls.push(`shared ${pack.sequence}`)
      return Promise.resolve({ tables: {} as never, giveBack: () => undefined })
    },
    borrowTables: (pack) => {
      calls.push(`lent ${pack.sequence}`)
      return Promise.resolve({ tables: {} as never, giveBack: () => undefined })
    },
  }
  const tables = new LentTables(source, { storedBytesMax: 1_000 })
  for (const [sequence, tableBytes] of [1_000, 1_001].entries()) {
    const record = { packId: String(sequence), objects: 200_000, packBytes: 5_000, tablesStart: 5_000 - tableBytes }
    await tables.borrow({ sequence, record } as Pack)
  }
  assert.deepEqual(calls, ['lent 0', 'shared 1'])
})

test('a walk through many objects reads tables past the cache, except those that it needs again and again', async () => {
  const calls: string[] = []
  const tables = new LentTables({
    sharedTables: (pack) => {
      calls.push(`shared ${pack.sequence}`)
      return Promise.resolve({ tables: {} as never, giveBack: () => undefined })
    },
    borrowTables: (pack) => {
      calls.push(`lent ${pack.sequence}`)
      return Promise.resolve({ tables: {} as never, giveBack: () => calls.push('given back') })
    },
  })
  const read = async (sequence: number, objects: number): Promise<void> =>
    tables.lend({ sequence, record: { packId: String(sequence), objects } } as Pack, () => Promise.resolve())
  for (let again = 0; again < 6; again++) await read(1, 50_000)
  await read(2, 50_000)
  for (let again = 0; again < 6; again++) await read(3, 1_000)
  assert.deepEqual(calls, [
    ...Array<string>(6).fill('shared 1'),
    'lent 2',
    'given back',
    ...Array.from({ length: 4 }, () => ['lent 3', 'given back']).flat(),
    ...Array<string>(2).fill('shared 3'),
  ])
  const fourth = { sequence: 4, record: { packId: '4', objects: 1 } } as Pack
  await assert.rejects(
    tables.lend(fourth, () => Promise.reject(new Error('of the user'))),
    /of the user/,
  )
  assert.deepEqual(calls.slice(-2), ['lent 4', 'given back'])
})

/** Tables that come when they are told to; which packs were asked for, and which were given back. */
function slowTables(): {
  source: ConstructorParameters<typeof LentTables>[0]
  asked: number[]
  back: number[]
  come: (sequence: number) => void
} {
  const asked: number[] = []
  const back: number[] = []
  const waiting = new Map<number, () => void>()
  const lend = (pack: Pick<Pack, 'sequence'>): ReturnType<PackCatalog['borrowTables']> =>
    new Promise((resolve) => {
      asked.push(pack.sequence)
      const borrowed = { tables: { objects: pack.sequence } as never, giveBack: () => back.push(pack.sequence) }
      waiting.set(pack.sequence, () => resolve(borrowed))
    })
  const come = (sequence: number): void => waiting.get(sequence)?.()
  return { source: { sharedTables: lend, borrowTables: lend }, asked, back, come }
}

function items(count: number, objects: number): { pack: Pack }[] {
  return Array.from({ length: count }, (_, i) => ({
    pack: { sequence: i + 1, record: { packId: String(i), objects } } as Pack,
  }))
}

test('the tables of the next packs are read while those of one are in use, a few at a time, and used in order', async () => {
  const { source, asked, back, come } = slowTables()
  const used: number[] = []
  let release: () => void = () => undefined
  const over = new LentTables(source).lendEach(items(4, 25_000), async (_, { objects }) => {
    used.push(objects)
    await new Promise<void>((resolve) => (release = resolve))
  })
  await setImmediate()
  assert.deepEqual(asked, [1, 2])
  come(2)
  come(1)
  await setImmediate()
  assert.deepEqual([used, asked, back], [[1], [1, 2], []])
  release()
  await setImmediate()
  assert.deepEqual([used, asked, back], [[1, 2], [1, 2, 3], [1]])
  come(3)
  for (let left = 0; left < 3; left++) {
    release()
    await setImmediate()
    come(4)
    await setImmediate()
  }
  await over
  assert.deepEqual(
    [used, asked, back],
    [
      [1, 2, 3, 4],
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ],
  )
})

test('tables that were read ahead are given back when their use fails, also those that come later', async () => {
  const { source, asked, back, come } = slowTables()
  const over = new LentTables(source).lendEach(items(3, 10), () => Promise.reject(new Error('of the user')))
  const failed = assert.rejects(over, /of the user/)
  await setImmediate()
  assert.deepEqual(asked, [1, 2, 3])
  come(2)
  come(1)
  await failed
  assert.deepEqual(
    [...back].sort((a, b) => a - b),
    [1, 2],
  )
  come(3)
  await setImmediate()
  assert.deepEqual(
    [...back].sort((a, b) => a - b),
    [1, 2, 3],
  )
})
