import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesystemBackend } from '../../../adapters/filesystem/index.ts'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { REAL_ENVIRONMENT } from '../../../src/environment.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { CODEC_DELTA, type PackTables } from '../../../src/store/pack/pack-format.ts'
import { PackCatalog, type Pack } from '../../../src/store/records/pack-catalog.ts'
import { viewProject } from '../../../src/store/records/projects.ts'
import { newDataFolder } from '../../cli/command.ts'
import { TERMS } from '../collect/collecting.ts'
import { assertSound, download, findingsOf, never, openStore, put } from '../support.ts'
import { assertHolds, compact, exported, history, PROJECT, uploaded } from './support.ts'

/** Their roots are longer than what DEFLATE looks back. */
const LARGE_ROOTS = history({ versions: 24, objects: 1_500, changed: 9 })

interface Merged {
  readonly pack: Pack
  readonly tables: PackTables
  /** The numbers of the delta blocks. */
  readonly deltas: readonly number[]
}

async function mergedPack({ records, blobs }: StorageBackend): Promise<Merged> {
  const catalog = new PackCatalog({ records, blobs, environment: REAL_ENVIRONMENT }, 16 * 1_048_576)
  const project = await viewProject(records, PROJECT)
  assert.ok(project !== undefined)
  const pack = await catalog.pack(project, project.sequence - 1)
  const tables = await catalog.tables(pack)
  const deltas = [...tables.directory.codecs.keys()].filter((block) => tables.directory.codecs[block] === CODEC_DELTA)
  return { pack, tables, deltas }
}

for (const [name, open] of [
  ['memory', () => memoryBackend()],
  ['files', (path: string) => filesystemBackend({ path })],
] as const)
  test(`long older versions of an object become deltas in a merged pack, and are read unchanged: ${name}`, async (t) => {
    const backend = open(newDataFolder(t))
    const opened = await uploaded(LARGE_ROOTS, backend)
    await compact(opened.store, LARGE_ROOTS)
    const { tables, deltas } = await mergedPack(backend)
    assert.ok(deltas.length >= LARGE_ROOTS.roots.length - 4, `${deltas.length} deltas`)
    for (const block of deltas) assert.ok(tables.directory.storedBytes[block] < tables.directory.rawBytes[block] / 8)
    await assertHolds(opened.store, LARGE_ROOTS)
    for (const { rootObjectId } of LARGE_ROOTS.roots) {
      const [line] = LARGE_ROOTS.oracle.lines([rootObjectId])
      const text = await opened.store.text(PROJECT, Buffer.from(rootObjectId), { signal: never })
      assert.equal(`${rootObjectId}\t${Buffer.from(text ?? []).toString()}`, line)
    }
    assert.deepEqual(
      (await exported(opened.store)).toSorted(),
      LARGE_ROOTS.oracle.lines(LARGE_ROOTS.oracle.objects.keys()),
    )
    await assertSound(backend)
    await opened.store.close()
  })

test('deltas of a merged pack are merged again, and one whose base is collected stays readable', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(LARGE_ROOTS, backend)
  await compact(opened.store, LARGE_ROOTS)
  const kept = { ...LARGE_ROOTS, roots: LARGE_ROOTS.roots.filter((_, at) => at % 3 === 2) }
  const collect = () => opened.store.collector.collect(PROJECT, () => Promise.resolve(kept.roots), TERMS)
  const pass = async () => {
    for (let epoch = 0; epoch < 8; epoch++) await opened.store.epochs.advance()
  }
  await pass()
  assert.ok((await collect())?.condemned.objects)
  await pass()
  assert.ok((await collect())?.freed.objects)
  for (const { rootObjectId } of kept.roots) {
    const got = await download(opened.store, PROJECT, rootObjectId)
    assert.deepEqual(got?.lines.toSorted(), LARGE_ROOTS.oracle.lines(LARGE_ROOTS.oracle.closure(rootObjectId).ids))
  }
  await put(opened.store, PROJECT, [{ id: 'later' }])
  await pass()
  await compact(opened.store, kept, { all: true })
  for (const { rootObjectId } of kept.roots) {
    const got = await download(opened.store, PROJECT, rootObjectId)
    assert.deepEqual(got?.lines.toSorted(), LARGE_ROOTS.oracle.lines(LARGE_ROOTS.oracle.closure(rootObjectId).ids))
  }
  await assertSound(backend)
  await opened.store.close()
})

test('a damaged delta is an error to those who read it, and check finds it', async () => {
  const backend = memoryBackend()
  const opened = await uploaded(LARGE_ROOTS, backend)
  await compact(opened.store, LARGE_ROOTS)
  await opened.store.close()
  const { pack, tables, deltas } = await mergedPack(backend)
  assert.ok('blob' in pack.source)
  const { blob } = pack.source
  const bytes = Uint8Array.from(await backend.blobs.read(blob, 0, pack.record.packBytes))
  const [first] = deltas
  bytes[tables.directory.offsets[first] + 40] ^= 1
  await backend.blobs.remove([blob])
  await backend.blobs.put(blob, oneChunk(bytes))
  const { store } = await openStore(backend)
  const ordinal = tables.directory.objectEnds[first] - 1
  const id = tables.ids.bytes.subarray(ordinal === 0 ? 0 : tables.ids.ends[ordinal - 1], tables.ids.ends[ordinal])
  await assert.rejects(store.text(PROJECT, id, { signal: never }), { code: 'corrupt_data' })
  await store.close()
  const { damages } = await findingsOf(backend)
  assert.match(damages[0].message, new RegExp(`^block ${first}: the stored bytes do not match`))
})

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
