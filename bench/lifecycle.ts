import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { filesystemBackend } from '../adapters/filesystem/index.ts'
import { DeflatePool } from '../src/compression/deflate-pool.ts'
import { emit } from '../src/emit/emit.ts'
import { inspectBatches } from '../src/inspect/inspect.ts'
import { DEFAULT_LIMITS } from '../src/limits.ts'
import type { GraphRoot } from '../src/object/roots.ts'
import { asGuarded } from '../src/storage/guard.ts'
import { createPackStore, type PackStore } from '../src/store/pack-store.ts'
import { MB, printRows, repeat, round, type Row, sample } from './measure.ts'
import { countOf, orUsage, readOptions } from './options.ts'
import { building, type BuildingOptions, type ModelObject } from './model/building.ts'

/*
 * `npm run bench:lifecycle`: a building of 100 versions, in each of which 1 in 100 objects is new. What it takes on the disk, and how fast it is
 * uploaded and downloaded, before and after compaction. Beside it the newest version alone, uploaded at once. No timing is compared with one of
 * another run.
 */

/** Where the changes are, and whether the levels and the root name everything below them. */
const MODELS: Readonly<Record<string, Pick<BuildingOptions, 'closure' | 'changes' | 'changed'>>> = {
  'in-one-part': { closure: 'root-less', changes: 'in one part', changed: 0.009 },
  everywhere: { closure: 'root-less', changes: 'everywhere', changed: 0.0068 },
  'with-closures': { closure: true, changes: 'in one part', changed: 0.009 },
}
const USAGE = `npm run bench:lifecycle -- [--objects N] [--versions N] [--models ${Object.keys(MODELS).join(',')}]`
const chosen = readOptions(USAGE, {
  objects: { type: 'string', default: '5000' },
  versions: { type: 'string', default: '100' },
  models: { type: 'string', default: Object.keys(MODELS).join(',') },
})
const OBJECTS = orUsage(USAGE, () => countOf('objects', chosen.objects))
const VERSIONS = orUsage(USAGE, () => countOf('versions', chosen.versions))
const DOWNLOADS = 15
const DISK_RATIO_MAX = 2
/** Downloads of a few milliseconds vary more than this from run to run. */
const DOWNLOAD_RATIO_MAX = 1.2
/** Retired packs and replaced plans stay for a day of the store's own time, and their marks for another. */
const EPOCHS = 300
const PROJECT = 'building'

const { signal } = new AbortController()
const compressor = new DeflatePool({ level: 1, concurrency: 2 })
const scratch = mkdtempSync(join(tmpdir(), 'stowage-lifecycle-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))

interface Opened {
  readonly folder: string
  store: PackStore
}

interface Disk {
  readonly packs: number
  readonly plans: number
  readonly records: number
}

for (const name of orUsage(USAGE, namedModels)) await measure(name)
compressor.close()

function namedModels(): readonly string[] {
  const names = chosen.models.split(',')
  for (const name of names)
    if (!Object.hasOwn(MODELS, name))
      throw new RangeError(`--models has "${name}"; it must be ${Object.keys(MODELS).join(' or ')}`)
  return names
}

async function measure(name: string): Promise<void> {
  const upload = (at: Opened, revision: number, known: Set<string>): Promise<string> =>
    uploadVersion(at, { ...MODELS[name], objects: OBJECTS, revision }, known)
  const first = await opened(`${name}-first`)
  await upload(first, 0, new Set())
  const firstDisk = await settledDisk(first)
  const versions = await opened(`${name}-versions`)
  const known = new Set<string>()
  const roots: GraphRoot[] = []
  for (let version = 0; version < VERSIONS; version++) {
    const rootObjectId = await upload(versions, version, known)
    roots.unshift({ kind: 'version', id: String(version), groupId: 'model', rootObjectId })
  }
  const [{ rootObjectId: newest }] = roots
  const fresh = await opened(`${name}-fresh`)
  const newPerVersion = (known.size - OBJECTS) / (VERSIONS - 1)
  await upload(fresh, VERSIONS - 1, new Set())
  const before = { disk: await settledDisk(versions), download: await downloads(versions, newest) }
  const uploadBefore = await timed(() => upload(versions, VERSIONS, known))
  const compaction = await timed(async () => {
    await versions.store.compactor.compact(PROJECT, () => Promise.resolve(roots), { signal, all: true })
  })
  for (let epoch = 0; epoch < EPOCHS; epoch++) await versions.store.epochs.advance()
  await reopen(versions)
  const after = { disk: await settledDisk(versions), download: await downloads(versions, newest) }
  const uploadAfter = await timed(() => upload(versions, VERSIONS + 1, known))
  // One after the other, so that both meet the same machine.
  const pairs = await repeat(DOWNLOADS, async () => ({
    fresh: await timed(() => download(fresh, newest)),
    versions: await timed(() => download(versions, newest)),
  }))
  const ratio = sample(pairs.map((pair) => pair.versions / pair.fresh)).median
  const diskRatio = total(after.disk) / total(firstDisk)
  const rows: Row[] = [
    { what: 'new objects in each version', value: `${round((100 * newPerVersion) / OBJECTS)} in 100` },
    { what: 'disk, first version alone', value: diskText(firstDisk) },
    { what: `disk, ${VERSIONS} versions, before`, value: diskText(before.disk) },
    {
      what: `disk, ${VERSIONS} versions, after`,
      value: diskText(after.disk),
      reference: `${round(diskRatio)} times the first version alone`,
      target: `at most ${DISK_RATIO_MAX}`,
      met: diskRatio <= DISK_RATIO_MAX,
    },
    { what: 'download of the newest version, before', value: `${round(before.download)} ms` },
    { what: 'download of the newest version, after', value: `${round(after.download)} ms` },
    {
      what: 'the same beside one that was uploaded at once',
      value: `${round(ratio)} times as long`,
      target: `at most ${DOWNLOAD_RATIO_MAX}`,
      met: ratio <= DOWNLOAD_RATIO_MAX,
    },
    { what: 'upload of another version, before', value: `${round(uploadBefore)} ms` },
    { what: 'upload of another version, after', value: `${round(uploadAfter)} ms` },
    { what: 'compaction', value: `${round(compaction / 1_000)} s` },
  ]
  printRows(`A building of ${OBJECTS} objects, ${VERSIONS} versions, ${name}`, rows)
  for (const { store } of [first, versions, fresh]) await store.close()
  if (rows.some(({ met }) => met === false)) process.exitCode = 1
}

async function opened(name: string): Promise<Opened> {
  const folder = join(scratch, name)
  return { folder, store: await openStore(folder) }
}

/** Closes the store and opens it again, so that its database lies in its files. */
async function reopen(at: Opened): Promise<void> {
  await at.store.idle()
  await at.store.close()
  at.store = await openStore(at.folder)
  await at.store.idle()
}

async function openStore(folder: string): Promise<PackStore> {
  const store = createPackStore({
    backend: asGuarded(filesystemBackend({ path: folder })),
    onBackgroundError: (error) => console.error(error),
  })
  await store.ready()
  return store
}

/** Uploads what is not known yet; returns the id of the root. */
async function uploadVersion({ store }: Opened, version: BuildingOptions, known: Set<string>): Promise<string> {
  let rootId = ''
  const elements = async function* (): AsyncGenerator<{ bytes: Uint8Array; part: number; index: number }[]> {
    let index = 0
    for (const batch of building(version)) {
      const fresh: readonly ModelObject[] = batch.filter(({ id }) => !known.has(id))
      for (const { id } of fresh) known.add(id)
      rootId = batch.at(-1)?.id ?? rootId
      if (fresh.length > 0) yield fresh.map(({ json }) => ({ bytes: Buffer.from(json), part: 0, index: index++ }))
    }
  }
  await store.put(PROJECT, inspectBatches(elements(), DEFAULT_LIMITS, { signal }), { signal })
  return rootId
}

async function download({ store }: Opened, rootId: string): Promise<void> {
  const selection = await store.closure(PROJECT, rootId, { signal })
  if (selection === undefined) throw new Error('the root is not held')
  for await (const chunk of emit(selection, { format: 'text', coding: 'gzip' }, { signal, compressor })) void chunk
  selection.release()
}

async function downloads(from: Opened, rootId: string): Promise<number> {
  return sample(await repeat(DOWNLOADS, () => timed(() => download(from, rootId)))).median
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await act()
  return performance.now() - started
}

/** LevelDB gives back the space of what was overwritten in its own time; here that time has come. */
async function settledDisk(at: Opened): Promise<Disk> {
  await at.store.idle()
  await at.store.close()
  const database = new ClassicLevel(join(at.folder, 'records'), { compression: false })
  await database.compactRange('\u0000', '\u{10ffff}')
  await database.close()
  at.store = await openStore(at.folder)
  await at.store.idle()
  const blobs = filesIn(join(at.folder, 'packs'))
  const plans = blobs.filter(({ name }) => name.startsWith('plan-'))
  const planBytes = bytesOf(plans)
  return { packs: bytesOf(blobs) - planBytes, plans: planBytes, records: bytesOf(filesIn(join(at.folder, 'records'))) }
}

function filesIn(folder: string): readonly { readonly name: string; readonly bytes: number }[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ name: entry.name, bytes: statSync(join(entry.parentPath, entry.name)).size }))
}

function bytesOf(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0)
}

function total({ packs, plans, records }: Disk): number {
  return packs + plans + records
}

function diskText(disk: Disk): string {
  const parts = (['packs', 'plans', 'records'] as const).map((part) => `${part} ${round(disk[part] / MB)}`)
  return `${round(total(disk) / MB)} MB (${parts.join(', ')})`
}
