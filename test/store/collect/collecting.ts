import assert from 'node:assert/strict'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import type { CollectionCounts, CollectOptions } from '../../../src/object/collection.ts'
import type { GraphRoot } from '../../../src/object/roots.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { readHead } from '../../../src/store/records/projects.ts'
import { readStoredTotals } from '../../../src/store/records/totals.ts'
import type { PackStore } from '../../../src/store/pack-store.ts'
import { type Made, never, openStore } from '../support.ts'

export const PROJECT = 'p'
/** Grace of the tests, in epochs. */
export const OLDER_THAN = 3
export const UNDO = 2

export const TERMS: CollectOptions = { signal: never, olderThanEpochs: OLDER_THAN, undoEpochs: UNDO }

/** The roots that a test keeps by hand, and the stores that share them. */
export interface Collecting {
  readonly backend: StorageBackend
  readonly stores: readonly PackStore[]
  readonly store: PackStore
  readonly roots: Set<string>
  readRoots(): Promise<readonly GraphRoot[]>
  /** Lets epochs pass. */
  pass(epochs: number): Promise<void>
  collect(options?: Partial<CollectOptions>, store?: PackStore): Promise<CollectionCounts>
  close(): Promise<void>
}

/** Several stores over one storage in memory. */
export async function openCollecting(
  count = 1,
  backend: StorageBackend = memoryBackend(),
  options: Parameters<typeof openStore>[1] = {},
): Promise<Collecting> {
  const stores: PackStore[] = []
  for (let i = 0; i < count; i++) stores.push((await openStore(backend, options)).store)
  const [store] = stores
  const roots = new Set<string>()
  const readRoots = (): Promise<readonly GraphRoot[]> =>
    Promise.resolve([...roots].map((id) => ({ kind: 'version', id, groupId: 'm', rootObjectId: id })))
  return {
    backend,
    stores,
    store,
    roots,
    readRoots,
    pass: async (epochs) => {
      for (let i = 0; i < epochs; i++) await store.epochs.advance()
      // Each server looks once a minute.
      for (const one of stores) await one.epochs.advanceWhenDue()
    },
    collect: async (changed = {}, by = store) => {
      const report = await by.collector.collect(PROJECT, readRoots, { ...TERMS, ...changed })
      assert.ok(report !== undefined, 'the project exists')
      return report
    },
    close: async () => {
      for (const one of stores) await one.close()
    },
  }
}

/** An object with references to others. */
export function node(id: string, children: readonly string[] = [], text = ''): Made {
  return { id, children: children.map((referencedId) => ({ referencedId })), text }
}

/** The bytes of JSON of these objects. */
export function jsonBytesOf(objects: readonly Made[]): number {
  return objects.reduce((sum, object) => sum + Buffer.byteLength(JSON.stringify(object)), 0)
}

/** A report's amounts, without the bytes in storage. */
export function counted({ objects, jsonBytes }: { readonly objects: number; readonly jsonBytes: number }): {
  readonly objects: number
  readonly jsonBytes: number
} {
  return { objects, jsonBytes }
}

/** The totals of the project as they are stored: uploads are measured against them. */
export async function totalsOf({ records }: StorageBackend): Promise<ReturnType<typeof counted> | undefined> {
  const { head } = await readHead(records, PROJECT)
  if (head === undefined || head.removed) return undefined
  const stored = await readStoredTotals(records, { projectId: PROJECT, generation: head.generation })
  return stored.totals && counted(stored.totals)
}
