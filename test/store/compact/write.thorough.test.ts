import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { DeflatePool } from '../../../src/compression/deflate-pool.ts'
import { REAL_ENVIRONMENT } from '../../../src/environment.ts'
import { divideMemory } from '../../../src/memory/service-memory.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { Bitmap } from '../../../src/store/bytes/bitmap.ts'
import { inMergedOrder, type MergeSource } from '../../../src/store/compact/order.ts'
import { Pace } from '../../../src/store/compact/pace.ts'
import { writeMerged } from '../../../src/store/compact/write.ts'
import { type PackTables, tableEntry, targetId, type Rows } from '../../../src/store/pack/pack-format.ts'
import { SegmentReader } from '../../../src/store/pack/segment-reader.ts'
import { segmentsOf } from '../../../src/store/pack/segment.ts'
import { PackCatalog, type Pack } from '../../../src/store/records/pack-catalog.ts'
import { viewProject } from '../../../src/store/records/projects.ts'
import { countLent } from '../../support/lent.ts'
import { putBlob } from '../failures.ts'
import { randomGraph, referTo, seeded, splitRandomly } from '../graphs.ts'
import { collected, lineOf, type Made, measureStorage, never, openStore, put } from '../support.ts'

const PACK_ID = 'ab'.repeat(16)

/** Packs of a project, and what reads and writes them. */
async function workshop(backend: StorageBackend, uploads: readonly (readonly Made[])[]) {
  const opened = await openStore(backend)
  for (const objects of uploads) await put(opened.store, 'demo', objects)
  const { records, blobs } = backend
  const catalog = new PackCatalog({ records, blobs, environment: REAL_ENVIRONMENT }, 16 * 1_048_576)
  const project = await viewProject(records, 'demo')
  assert.ok(project !== undefined)
  const packs: Pack[] = []
  for (let sequence = 1; sequence < project.sequence; sequence++) packs.push(await catalog.pack(project, sequence))
  const { answers, requests } = divideMemory(undefined, { environment: REAL_ENVIRONMENT })
  const reader = new SegmentReader(blobs, answers, REAL_ENVIRONMENT)
  const merge = async (sources: readonly MergeSource[], closures: Parameters<typeof inMergedOrder>[1] = []) => {
    const deflate = new DeflatePool({ level: 4, concurrency: 1 })
    const memory = requests.open({ signal: never })
    try {
      const header = { projectId: 'demo', generation: 1, packId: PACK_ID, timeMs: 0 }
      const pace = new Pace(REAL_ENVIRONMENT, 1)
      const parts = { blobs, catalog, reader, deflate, memory, pace, environment: REAL_ENVIRONMENT }
      const writing = { ...parts, windowBytesMax: Infinity }
      const written = await writeMerged(writing, header, inMergedOrder(sources, closures), never)
      const source = written.inline === undefined ? { blob: await mergedBlob(backend) } : { bytes: written.inline }
      const buffers = answers.open()
      const all = segmentsOf(written.tables, Bitmap.full(written.tables.objects), source)
      const lines = Buffer.concat(await collected(reader.lines([[...all]], { signal: never, buffers }))).toString()
      buffers.end()
      return { ...written, lines: lines.split('\n').slice(0, -1) }
    } finally {
      memory.release()
      deflate.close()
    }
  }
  return { packs, catalog, merge, close: () => opened.store.close() }
}

async function mergedBlob(backend: StorageBackend): Promise<string> {
  const name = (await measureStorage(backend)).blobs.find((blob) => blob.endsWith(`/${PACK_ID}`))
  assert.ok(name !== undefined)
  return name
}

function owning(packs: readonly Pack[]): MergeSource[] {
  return packs.map((pack) => ({ pack, moving: pack.record.owned ?? Bitmap.empty(0) }))
}

/** The ids that each object mentions, by its id. */
function mentions(tables: PackTables, rows: Rows): Map<string, string[]> {
  const all = new Map<string, string[]>()
  for (let ordinal = 0; ordinal < tables.objects; ordinal++) {
    const targets = rows.targets.subarray(ordinal === 0 ? 0 : rows.ends[ordinal - 1], rows.ends[ordinal])
    const ids = Array.from(targets, (target) => Buffer.from(targetId(tables, target)).toString())
    all.set(Buffer.from(tableEntry(tables.ids, ordinal)).toString(), ids)
  }
  return all
}

const GRAPH = randomGraph(seeded(5), { objects: 3_000, claimPercent: 20, missingPercent: 5, isCyclic: true })
const UPLOADS = splitRandomly(seeded(6), GRAPH, 7)

test('a merged pack has every line of its sources, and every reference and claim', async () => {
  const backend = memoryBackend()
  const { packs, catalog, merge, close } = await workshop(backend, UPLOADS)
  assert.ok(packs.length > 3)
  const merged = await merge(owning(packs))
  assert.equal(merged.inline, undefined)
  assert.deepEqual(merged.lines, GRAPH.map(lineOf), 'in the order of the sources')
  for (const kind of ['references', 'claims'] as const) {
    const before = new Map<string, string[]>()
    for (const pack of packs) {
      const tables = await catalog.tables(pack)
      for (const [id, ids] of mentions(tables, tables[kind])) before.set(id, ids)
    }
    assert.deepEqual(mentions(merged.tables, merged.tables[kind]), before, kind)
  }
  await close()
})

test('a merged pack contains only the chosen objects, the newest closure first and in its own blocks', async () => {
  const { packs, merge, close } = await workshop(memoryBackend(), UPLOADS)
  const sources = packs.map((pack) => {
    const moving = Bitmap.empty(pack.record.objects)
    for (let ordinal = 0; ordinal < pack.record.objects; ordinal++) if (ordinal % 3 !== 0) moving.add(ordinal)
    return { pack, moving }
  })
  const closure = packs.slice(1, 3).map(({ sequence, record }) => {
    const wanted = Bitmap.empty(record.objects)
    for (let ordinal = 0; ordinal < record.objects; ordinal += 2) wanted.add(ordinal)
    return { sequence, packId: record.packId, wanted }
  })
  const idsIn = (chosen: (pack: Pack, ordinal: number) => boolean): string[] =>
    packs.flatMap((pack, number) =>
      UPLOADS[number].filter((_, ordinal) => ordinal % 3 !== 0 && chosen(pack, ordinal)).map(lineOf),
    )
  const isFirst = ({ sequence }: Pack, ordinal: number): boolean =>
    closure.some((part) => part.sequence === sequence) && ordinal % 2 === 0
  const first = idsIn(isFirst)
  const merged = await merge(sources, [closure])
  assert.deepEqual(merged.lines.slice(0, first.length), first)
  const rest = idsIn((pack, ordinal) => !isFirst(pack, ordinal))
  assert.deepEqual(merged.lines.slice(first.length).toSorted(), rest.toSorted(), 'in an order that compresses well')
  assert.ok(merged.tables.directory.objectEnds.includes(first.length), 'a block ends with the closure')
  await close()
})

test('a merge gives back all memory that it reads and sorts in', async (t) => {
  const random = seeded(9)
  const uploads = Array.from({ length: 3 }, (_, upload) =>
    Array.from({ length: 200 }, (_, i): Made => ({
      id: `${upload}-${i}`,
      text: Array.from({ length: 300 }, () => random(1_000_000)).join(),
      children: referTo([`${upload}-${(i * 7) % 200}`]),
    })),
  )
  const { packs, merge, close } = await workshop(memoryBackend(), uploads)
  const [first] = packs
  const closure = [{ sequence: first.sequence, packId: first.record.packId, wanted: Bitmap.full(100) }]
  const lent = countLent(t)
  const merged = await merge(owning(packs), [closure])
  t.mock.reset()
  assert.deepEqual(merged.lines.toSorted(), uploads.flat().map(lineOf).toSorted())
  assert.ok(lent.bytes > 2_000_000, `${lent.bytes} bytes were lent`)
  // Of the lines that `merge` itself reads afterwards nothing comes back.
  assert.equal(lent.outBytes, Buffer.byteLength(merged.lines.join('\n')) + 1)
  await close()
})

test('versions of one object are stored next to each other, and take little more space than one of them', async () => {
  const random = seeded(8)
  const idOf = (): string => Array.from({ length: 32 }, () => random(16).toString(16)).join('')
  const children = Array.from({ length: 40 }, () => Array.from({ length: 200 }, idOf))
  const uploads = Array.from({ length: 30 }, (_, version) => {
    for (const ids of children) ids[version] = idOf()
    return children.map((ids, i): Made => ({ id: `${version}-${i}`, children: referTo(ids) }))
  })
  const { packs, merge, close } = await workshop(memoryBackend(), uploads)
  const newest = packs.slice(-1).map(({ sequence, record }) => {
    return { sequence, packId: record.packId, wanted: Bitmap.full(record.objects) }
  })
  const merged = await merge(owning(packs), [newest])
  assert.deepEqual(merged.lines.toSorted(), uploads.flat().map(lineOf).toSorted())
  const before = packs.reduce((sum, { record }) => sum + record.tablesStart, 0)
  assert.ok(merged.tablesStart < before / 5, `${merged.tablesStart} of ${before} bytes`)
  await close()
})

test('a small merged pack is stored in its record, and an object with very many references is merged too', async () => {
  const small = await workshop(memoryBackend(), [[{ id: 'a' }], [{ id: 'b', child: { referencedId: 'a' } }]])
  const merged = await small.merge(owning(small.packs))
  assert.equal(merged.inline?.length, merged.packBytes)
  assert.deepEqual(
    [...mentions(merged.tables, merged.tables.references)],
    [
      ['a', []],
      ['b', ['a']],
    ],
  )
  await small.close()
  const ids = Array.from({ length: 12_000 }, (_, i) => `child-${i}`)
  const wide = await workshop(memoryBackend(), [[{ id: 'wide', children: referTo(ids) }], [{ id: 'other' }]])
  const wideMerged = await wide.merge(owning(wide.packs))
  assert.deepEqual(mentions(wideMerged.tables, wideMerged.tables.references).get('wide'), ids)
  await wide.close()
})

test('a merge of a damaged pack fails, and leaves nothing', async () => {
  const backend = memoryBackend()
  const { packs, merge, close } = await workshop(backend, UPLOADS)
  const pack = packs.find(({ source }) => 'blob' in source)
  assert.ok(pack !== undefined && 'blob' in pack.source)
  const bytes = await backend.blobs.read(pack.source.blob, 0, pack.record.packBytes)
  bytes[300] ^= 1
  await putBlob(backend, pack.source.blob, bytes)
  const before = (await measureStorage(backend)).blobs
  await assert.rejects(merge(owning(packs)), { code: 'corrupt_data' })
  assert.deepEqual((await measureStorage(backend)).blobs, before)
  await close()
})
