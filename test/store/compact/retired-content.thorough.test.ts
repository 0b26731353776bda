import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../../src/environment.ts'
import { StowageError } from '../../../src/errors.ts'
import type { ProjectTotals } from '../../../src/object/graph-store.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { packBlobName, packKey, retiredContentKey, totalsKey } from '../../../src/store/records/keys.ts'
import { OutdatedViewError, PackCatalog } from '../../../src/store/records/pack-catalog.ts'
import { decodePackRecord } from '../../../src/store/records/pack-record.ts'
import { viewProject } from '../../../src/store/records/projects.ts'
import type { ProjectView } from '../../../src/store/records/project-view.ts'
import { readTotals } from '../../../src/store/records/totals.ts'
import { reindexStore } from '../../../src/store/upkeep/reindex.ts'
import { TERMS } from '../collect/collecting.ts'
import { hooked, imageOf, putRecord, restore } from '../failures.ts'
import { referTo } from '../graphs.ts'
import {
  assertListed,
  assertSound,
  collected,
  findingsOf,
  type Made,
  measureStorage,
  never,
  type Opened,
  openStore,
  put,
} from '../support.ts'
import { compact, PROJECT, smallest } from './support.ts'

/* Small packs lie inside their records. When they are retired, their contents move beside these. */

const PACKS = 30
/** Random bytes do not compress: a pack with these is nearly as large as may lie inside a record. */
const RANDOM_BYTES = 40_000
const CONTENT_BYTES = PACKS * RANDOM_BYTES

const UPLOADS: readonly Made[] = Array.from({ length: PACKS }, (_, i) => ({
  id: `object-${i}`,
  text: randomBytes(RANDOM_BYTES).toString('base64'),
  children: referTo(i === 0 ? [] : [`object-${i - 1}`]),
}))
const ROOT: string = UPLOADS[PACKS - 1].id
const ROOTS = { roots: [{ kind: 'version', id: '1', groupId: 'model', rootObjectId: ROOT }] }

async function uploaded(backend: StorageBackend = memoryBackend()): Promise<Opened> {
  const opened = await openStore(backend)
  for (const object of UPLOADS) await put(opened.store, PROJECT, [object])
  await opened.store.idle()
  return opened
}

async function merged(backend?: StorageBackend): Promise<Opened> {
  const opened = await uploaded(backend)
  assert.equal((await compact(opened.store, ROOTS, { all: true })).packsAfter, 1)
  const { records } = await measureStorage(opened.backend)
  assert.deepEqual([records['k'], records['b']], [PACKS + 1, PACKS], 'all of the packs were small')
  return opened
}

async function viewOf({ records }: StorageBackend): Promise<ProjectView> {
  const view = await viewProject(records, PROJECT)
  assert.ok(view !== undefined)
  return view
}

function catalogOver({ records, blobs }: StorageBackend): PackCatalog {
  return new PackCatalog({ records, blobs, environment: REAL_ENVIRONMENT }, 10_000_000)
}

/** The same storage, and how many bytes of records were read from it since the last look. */
function counting({ records, blobs }: StorageBackend): { readonly backend: StorageBackend; readSince(): number } {
  let read = 0
  const backend: StorageBackend = {
    blobs,
    records: {
      limits: records.limits,
      getMany: async (keys, options) => {
        const values = await records.getMany(keys, options)
        for (const value of values) read += value?.length ?? 0
        return values
      },
      range: async function* (bounds, options) {
        for await (const entries of records.range(bounds, options)) {
          for (const { value } of entries) read += value.length
          yield entries
        }
      },
      insertMany: records.insertMany.bind(records),
      commit: records.commit.bind(records),
      close: () => Promise.resolve(),
    },
    close: () => Promise.resolve(),
  }
  const readSince = (): number => {
    const before = read
    read = 0
    return before
  }
  return { backend, readSince }
}

test('collections, compactions and scans of packs do not read what was retired', async () => {
  const { backend, readSince } = counting(memoryBackend())
  const { store } = await merged(backend)
  const catalog = catalogOver(backend)
  const view = await viewOf(backend)
  const scans: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['a collection', () => store.collector.collect(PROJECT, () => Promise.resolve(ROOTS.roots), TERMS)],
    ['a compaction', () => compact(store, ROOTS)],
    ['known packs', () => catalog.knownPacks(view, 1_000, never)],
    ['packs since the first', () => collected(catalog.packsFrom(view, 0, never))],
    ['usage', () => store.usages.usage(PROJECT, ROOTS.roots, { signal: never })],
  ]
  for (const [name, scan] of scans) {
    readSince()
    await scan()
    const read = readSince()
    assert.ok(read < CONTENT_BYTES / 20, `${name} read ${read} bytes of records`)
  }
  assert.equal((await catalog.knownPacks(view, 1_000, never))?.length, 1)
  await store.close()
})

async function totalsOf({ records, blobs }: StorageBackend): Promise<ProjectTotals> {
  const project = { projectId: PROJECT, generation: 1 }
  return (await readTotals({ records, blobs, environment: REAL_ENVIRONMENT }, project)).totals
}

async function totalsCountedAnew(backend: StorageBackend): Promise<ProjectTotals> {
  const copy = await restore(memoryBackend(), await imageOf(backend))
  await putRecord(copy, totalsKey(PROJECT, 1), undefined)
  return totalsOf(copy)
}

test('a reader of the layout before finds retired packs whole, and so does one while packs are retired', async () => {
  const backend = memoryBackend()
  const { store } = await uploaded(backend)
  const before = await viewOf(backend)
  let looks = 0
  const merging = await openStore(
    hooked(backend, async (call, key, work) => {
      const result = await work()
      if (call !== 'commit' || !key.startsWith('k\0')) return result
      looks++
      const packs = await catalogOver(backend).knownPacks(before, 1_000, never)
      assert.equal(packs?.length, PACKS)
      for (const pack of packs) assert.equal((await catalogOver(backend).tables(pack)).objects, 1)
      const usage = await store.usages.usage(PROJECT, ROOTS.roots, { signal: never })
      assert.deepEqual([usage.objects, usage.unreferencedObjects], [PACKS, 0])
      assert.deepEqual(await totalsCountedAnew(backend), await totalsOf(backend))
      await assertSound(backend)
      return result
    }),
  )
  await compact(merging.store, ROOTS, { all: true })
  assert.ok(looks > 0)
  for (let sequence = 1; sequence <= PACKS; sequence++) {
    const pack = await catalogOver(backend).pack(before, sequence)
    assert.equal(pack.record.content, 'beside')
    assert.ok('bytes' in pack.source && pack.source.bytes.length === pack.record.packBytes)
  }
  await merging.store.close()
  await store.close()
})

for (const [what, code, away] of [
  ['is dropped', 'overloaded', (store: Opened['store']) => drop(store)],
  ['goes with its project', 'not_found', (store: Opened['store']) => remove(store)],
] as const) {
  test(`a pack that ${what} between the reads of its record and of its content is no damage`, async () => {
    const backend = memoryBackend()
    const { store } = await uploaded(backend)
    const before = await viewOf(backend)
    await compact(store, ROOTS, { all: true })
    let isAway = false
    const overtaken = hooked(backend, async (call, key, work) => {
      if (call === 'getMany' && key.startsWith('b\0') && !isAway) {
        isAway = true
        await away(store)
      }
      return work()
    })
    await assert.rejects(catalogOver(overtaken).pack(before, 1), (error: unknown) => {
      assert.ok(error instanceof StowageError)
      assert.equal(error instanceof OutdatedViewError, code === 'overloaded')
      return error.code === code
    })
    assert.ok(isAway)
    await store.close()
  })
}

async function drop(store: Opened['store']): Promise<void> {
  assert.ok(await store.compactor.dropRetired(PROJECT, () => true, never))
}

async function remove(store: Opened['store']): Promise<void> {
  await store.remove(PROJECT)
  await store.idle()
}

test('the record of a retired pack and its content go together, in commits that the smallest storage takes', async () => {
  const backend = smallest()
  const { store } = await merged(backend)
  await assertSound(backend)
  await drop(store)
  const { records } = await measureStorage(backend)
  assert.deepEqual([records['k'], records['b']], [1, undefined])
  await assertSound(backend)
  await assertListed(store, PROJECT, UPLOADS)
  await store.close()
})

test('a removed project takes the contents of its retired packs along', async () => {
  const { store, backend } = await merged()
  await remove(store)
  assert.deepEqual((await measureStorage(backend)).records, { h: 1, c: PACKS }, 'marks stay for a day')
  await store.close()
})

test('check finds a content that is lost, damaged, or left without its pack', async () => {
  const { store, backend } = await merged()
  await store.close()
  const [key, contentKey] = [packKey(PROJECT, 1, 3), retiredContentKey(PROJECT, 1, 3)]
  const [record, content] = await backend.records.getMany([key, contentKey])
  assert.ok(record !== undefined && content !== undefined)
  const flipped = Buffer.from(content)
  flipped[1_000] ^= 1
  for (const [lost, value, subject] of [
    [contentKey, undefined, 'pack 3'],
    [contentKey, flipped, 'pack 3'],
    [key, undefined, 'content of pack 3'],
  ] as const) {
    await putRecord(backend, lost, value)
    const { damages } = await findingsOf(backend)
    assert.deepEqual(
      damages.map((finding) => finding.subject),
      [subject],
    )
    await putRecord(backend, key, record)
    await putRecord(backend, contentKey, content)
  }
  await assertSound(backend)
})

test('reindex puts retired contents inside their records again, and finds those whose records are lost', async () => {
  for (const isMergedLost of [false, true]) {
    const { store, backend } = await merged()
    await store.close()
    const mergedKey = packKey(PROJECT, 1, PACKS + 1)
    const [value] = await backend.records.getMany([mergedKey])
    assert.ok(value !== undefined)
    if (isMergedLost) {
      await backend.blobs.remove([packBlobName(PROJECT, decodePackRecord(mergedKey, value).packId)])
      await putRecord(backend, mergedKey, undefined)
    }
    await putRecord(backend, packKey(PROJECT, 1, 3), undefined)
    const findings = await collected(reindexStore(backend))
    assert.ok(findings.some(({ message }) => message.startsWith('no record names its 1 objects')))
    assert.equal((await measureStorage(backend)).records['b'], undefined)
    await assertSound(backend)
    const again = await openStore(backend)
    await assertListed(again.store, PROJECT, UPLOADS)
    const { record } = await catalogOver(backend).pack(await viewOf(backend), 3)
    assert.equal(record.owned?.count, isMergedLost ? 1 : 0, 'the merged pack comes before its sources')
    await again.store.close()
  }
})

test('reindex reports a content that is lost or damaged, and keeps the rest', async () => {
  const { store, backend } = await merged()
  await store.close()
  const [lost, damaged] = [3, 4].map((sequence) => retiredContentKey(PROJECT, 1, sequence))
  const [content] = await backend.records.getMany([damaged])
  assert.ok(content !== undefined)
  content[1_000] ^= 1
  await putRecord(backend, lost, undefined)
  await putRecord(backend, damaged, content)
  const findings = await collected(reindexStore(backend))
  assert.deepEqual(
    findings.filter(({ severity }) => severity === 'damage').map(({ subject }) => subject),
    ['pack 3', 'pack 4', 'content of pack 4'],
  )
  await assertSound(backend)
  const again = await openStore(backend)
  await assertListed(again.store, PROJECT, UPLOADS)
  await again.store.close()
})
