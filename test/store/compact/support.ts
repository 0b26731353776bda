import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { CompactionReport, CompactOptions } from '../../../src/object/compaction.ts'
import type { ObjectCursor } from '../../../src/object/graph-store.ts'
import type { GraphRoot } from '../../../src/object/roots.ts'
import { CORE_RECORD_LIMITS, type StorageBackend } from '../../../src/storage/backend.ts'
import type { PackStore } from '../../../src/store/pack-store.ts'
import { Oracle, randomGraph, referTo, seeded } from '../graphs.ts'
import { download, listed, type Made, never, type Opened, openStore, put, readLines } from '../support.ts'

export const PROJECT = 'demo'

/** Versions of one graph: each has a root of its own and some objects that the versions before did not have. */
export interface History {
  readonly uploads: readonly (readonly Made[])[]
  readonly roots: readonly GraphRoot[]
  readonly oracle: Oracle
}

export interface HistoryOptions {
  readonly versions: number
  readonly objects: number
  readonly changed: number
  readonly paddingBytes?: number
}

export function history({ versions, objects, changed, paddingBytes = 120 }: HistoryOptions): History {
  const base = randomGraph(seeded(31), { objects, claimPercent: 10, missingPercent: 2, paddingBytes })
  const random = seeded(32)
  const oracle = new Oracle()
  const uploads: Made[][] = []
  const roots: GraphRoot[] = []
  const children = base.map(({ id }) => id)
  for (let version = 1; version <= versions; version++) {
    const made: Made[] = version === 1 ? [...base] : []
    for (let change = 0; version > 1 && change < changed; change++) {
      const place = random(objects)
      const below = base[place].id
      made.push({ id: `v${version}-${change}`, name: `${version} of ${change}`, child: { referencedId: below } })
      children[place] = `v${version}-${change}`
    }
    made.push({ id: `root-${version}`, version, elements: referTo(children) })
    oracle.add(made)
    uploads.push(made)
    roots.push({ kind: 'version', id: `${version}`, groupId: 'model', rootObjectId: `root-${version}` })
  }
  return { uploads, roots, oracle }
}

/** A storage that takes no larger commits than every storage must. */
export function smallest(backend: StorageBackend = memoryBackend()): StorageBackend {
  const { records } = backend
  const limited = {
    limits: CORE_RECORD_LIMITS,
    getMany: records.getMany.bind(records),
    range: records.range.bind(records),
    insertMany: records.insertMany.bind(records),
    commit: records.commit.bind(records),
    close: records.close.bind(records),
  }
  return { records: limited, blobs: backend.blobs, close: () => backend.close() }
}

/** A store with every version of a history, each brought by an upload of its own. */
export async function uploaded({ uploads }: History, backend: StorageBackend = memoryBackend()): Promise<Opened> {
  const opened = await openStore(backend)
  for (const objects of uploads) await put(opened.store, PROJECT, objects)
  await opened.store.idle()
  return opened
}

export async function compact(
  { compactor }: Pick<PackStore, 'compactor'>,
  { roots }: Pick<History, 'roots'>,
  options: Partial<CompactOptions> = {},
): Promise<CompactionReport> {
  const report = await compactor.compact(PROJECT, () => Promise.resolve(roots), { signal: never, ...options })
  assert.ok(report !== undefined)
  return report
}

export interface Checked {
  /** Of so many versions, spread over all. */
  readonly closures?: number
}

/** What a project holds is read in every way: all must be as the history says. */
export async function assertHolds(
  store: PackStore,
  { oracle, roots }: History,
  { closures = roots.length }: Checked = {},
): Promise<void> {
  const step = Math.max(1, Math.floor(roots.length / closures))
  for (let i = roots.length - 1; i >= 0; i -= step) {
    const { rootObjectId } = roots[i]
    const got = await download(store, PROJECT, rootObjectId)
    const { ids, missing } = oracle.closure(rootObjectId)
    assert.deepEqual(got?.lines.toSorted(), oracle.lines(ids), rootObjectId)
    assert.deepEqual(got?.missing, missing)
  }
  const some = [...oracle.objects.keys()].filter((_, i) => i % 7 === 0)
  assert.deepEqual((await listed(store, PROJECT, some)).toSorted(), oracle.lines(some))
  assert.deepEqual(await listed(store, PROJECT, [roots[0].rootObjectId]), oracle.lines([roots[0].rootObjectId]))
}

/** Everything that the project holds, from the pages of an export; `between` runs after each page. */
export async function exported(
  store: PackStore,
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<string[]> {
  const lines: string[] = []
  let end: ObjectCursor | undefined
  for (let after: ObjectCursor | undefined; ;) {
    const page = await store.pager.page(PROJECT, {
      textBytesMax: 4_000,
      signal: never,
      ...(after === undefined ? {} : { after }),
      ...(end === undefined ? {} : { until: end }),
    })
    assert.ok(page !== undefined)
    end ??= page.end
    lines.push(...(await readLines(page.selection)))
    page.selection.release()
    after = page.next
    if (isDeepStrictEqual(after, end)) return lines
    await between()
  }
}
