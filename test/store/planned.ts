import assert from 'node:assert/strict'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { Oracle, randomGraph, seeded, shuffled, splitRandomly } from './graphs.ts'
import { download, type Made, type Opened, openStore, put } from './support.ts'

/** Closures over 1,000 objects have plans in storage. */
export const GRAPH: readonly Made[] = randomGraph(seeded(77), { objects: 1_500, paddingBytes: 400 })
export const ROOT: string = GRAPH[0].id
/** Below it are some objects of some blocks, so that its plan has a patch. */
export const INNER: string = GRAPH[1].id
export const oracle: Oracle = new Oracle()
oracle.add(GRAPH)

/** The graph in several packs. */
export async function filled(backend: StorageBackend = memoryBackend(), packs = 4): Promise<Opened> {
  const opened = await openStore(backend)
  for (const objects of splitRandomly(seeded(78), shuffled(seeded(79), GRAPH), packs))
    await put(opened.store, 'demo', objects)
  return opened
}

/** That the closure is what it must be; says whether it came by a plan. */
export async function assertRight(opened: Opened, root: string = ROOT): Promise<boolean> {
  const got = await download(opened.store, 'demo', root)
  assert.ok(got !== undefined)
  const { ids, missing } = oracle.closure(root)
  assert.deepEqual(got.lines.toSorted(), oracle.lines(ids))
  assert.deepEqual(got.missing, missing)
  return got.isPlanned
}
