import assert from 'node:assert/strict'
import { setMaxListeners } from 'node:events'
import { gunzipSync } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { DeflatePool } from '../../src/compression/deflate-pool.ts'
import { emit, emittedLength } from '../../src/emit/emit.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import type { HaveRoot, PutResult } from '../../src/object/graph-store.ts'
import { IdSet } from '../../src/object/id-set.ts'
import { inspectBatches } from '../../src/inspect/inspect.ts'
import type { Selection } from '../../src/object/selection.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { asGuarded } from '../../src/storage/guard.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import type { Finding } from '../../src/store/upkeep/finding.ts'
import { createPackStore, type PackStore, type PackStoreOptions } from '../../src/store/pack-store.ts'
import { eventually, PATIENCE_MS } from '../support/patience.ts'

export const never: AbortSignal = new AbortController().signal
setMaxListeners(0, never)

/** An object as a test writes it down. */
export interface Made {
  readonly id: string
  readonly [member: string]: unknown
}

export function textOf(object: Made): string {
  return JSON.stringify(object)
}

export function lineOf(object: Made): string {
  return `${object.id}\t${textOf(object)}`
}

/** The objects as an upload brings them, `perBatch` in a batch. */
export async function* batchesOf(
  objects: readonly Made[],
  perBatch = 500,
  signal: AbortSignal = never,
): AsyncGenerator<ObjectBatch> {
  for (let at = 0; at < objects.length; at += perBatch) {
    const elements = objects
      .slice(at, at + perBatch)
      .map((object, i) => ({ bytes: Buffer.from(textOf(object)), part: 0, index: at + i }))
    yield* inspectBatches(asyncOf([elements]), DEFAULT_LIMITS, { signal })
  }
}

export async function* asyncOf<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items
}

export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

export interface Opened {
  readonly store: PackStore
  readonly backend: StorageBackend
  /** What failed beside any request. */
  readonly background: unknown[]
  /** A new store over the same storage, as after a restart. */
  reopen(options?: Partial<PackStoreOptions>): Promise<Opened>
}

/** A store over a storage that outlives it. */
export async function openStore(
  backend: StorageBackend = memoryBackend(),
  options: Partial<PackStoreOptions> = {},
): Promise<Opened> {
  const background: unknown[] = []
  const store = createPackStore({
    onBackgroundError: (error) => background.push(error),
    ...options,
    backend: undying(asGuarded(options.backend ?? backend)),
  })
  await store.ready()
  return {
    store,
    backend,
    background,
    reopen: async (changed = options) => {
      await store.close()
      return openStore(backend, changed)
    },
  }
}

/** The same storage, which closing leaves open. */
export function undying(backend: StorageBackend): StorageBackend {
  return { records: backend.records, blobs: backend.blobs, close: () => Promise.resolve() }
}

export function put(
  store: PackStore,
  project: string,
  objects: readonly Made[],
  perBatch?: number,
): Promise<PutResult> {
  return store.put(project, batchesOf(objects, perBatch), { signal: never })
}

export function idSet(ids: Iterable<string>): IdSet {
  const set = new IdSet()
  for (const id of ids) set.add(Buffer.from(id))
  return set
}

/** Which of the ids are held. */
export async function heldOf(store: PackStore, project: string, ids: readonly string[]): Promise<Set<string>> {
  const set = idSet(ids)
  const held = await store.has(project, set, { signal: never })
  return new Set(Array.from({ length: set.size }, (_, i) => set.stringAt(i)).filter((_, i) => held[i] === 1))
}

export function idsOf(objects: readonly Made[]): string[] {
  return objects.map(({ id }) => id)
}

/** How many of the objects are held. */
export async function heldCount(store: PackStore, project: string, objects: readonly Made[]): Promise<number> {
  return (await heldOf(store, project, idsOf(objects))).size
}

const compressor: DeflatePool = new DeflatePool({ level: 1, concurrency: 2 })
process.once('beforeExit', () => compressor.close())

/**
 * The lines of a selection, read in every way that there is: all must agree, hold as many objects as promised, and none
 * twice.
 */
export async function readLines(selection: Selection): Promise<string[]> {
  const lines = linesIn(Buffer.concat(await collected(selection.lines({ signal: never }))))
  const gzip = Buffer.concat(
    await collected(emit(selection, { format: 'text', coding: 'gzip' }, { signal: never, compressor })),
  )
  const unzipped = linesIn(gunzipSync(gzip))
  assert.deepEqual(unzipped.toSorted(), lines.toSorted(), 'gzip and identity differ')
  if (selection.plan !== undefined) {
    assert.deepEqual(unzipped, lines, 'the order differs')
    assert.equal(gzip.length, emittedLength(selection, { format: 'text', coding: 'gzip' }))
    assert.equal(Buffer.byteLength(lines.map((line) => `${line}\n`).join('')), selection.plan.rawBytes)
  }
  assert.equal(lines.length, selection.objects)
  assert.equal(new Set(lines.map(idOfLine)).size, lines.length, 'an object came twice')
  return lines
}

export function idOfLine(line: string): string {
  return line.slice(0, line.indexOf('\t'))
}

function linesIn(bytes: Buffer): string[] {
  const text = bytes.toString('utf8')
  assert.ok(text === '' || text.endsWith('\n'))
  return text.split('\n').slice(0, -1)
}

export interface Downloaded {
  readonly lines: readonly string[]
  readonly ids: ReadonlySet<string>
  readonly missing: readonly string[]
  readonly isPlanned: boolean
  readonly digest: string | undefined
  readonly have: Selection['have']
}

/** A root with everything below it; `undefined` when the root is not held. */
export async function download(
  store: PackStore,
  project: string,
  root: string,
  have?: readonly HaveRoot[],
): Promise<Downloaded | undefined> {
  const selection = await store.closure(project, root, { signal: never, ...(have === undefined ? {} : { have }) })
  if (selection === undefined) return undefined
  try {
    const lines = await readLines(selection)
    assert.equal(idOfLine(lines[0]), root, 'the root comes first')
    const missing = await selection.missingIds(Number.MAX_SAFE_INTEGER)
    assert.equal(missing.length, selection.missing)
    const ids = new Set(lines.map(idOfLine))
    return {
      lines,
      ids,
      missing: [...missing].sort(),
      isPlanned: selection.plan !== undefined,
      digest: selection.closureDigest,
      have: selection.have,
    }
  } finally {
    selection.release()
  }
}

/** The objects of a list that are held, as lines. */
export async function listed(store: PackStore, project: string, ids: readonly string[]): Promise<string[]> {
  const selection = await store.select(project, idSet(ids), { signal: never })
  try {
    return await readLines(selection)
  } finally {
    selection.release()
  }
}

/** All of the objects are in a list of them, with their texts. */
export async function assertListed(store: PackStore, project: string, objects: readonly Made[]): Promise<void> {
  assert.deepEqual((await listed(store, project, idsOf(objects))).toSorted(), objects.map(lineOf).toSorted())
}

/** How many bytes the storage holds, and in how many blobs and records of each kind. */
export async function measureStorage(
  backend: StorageBackend,
): Promise<{ bytes: number; blobs: string[]; records: Record<string, number> }> {
  const blobs: string[] = []
  const records: Record<string, number> = {}
  let bytes = 0
  for await (const batch of backend.blobs.list('')) {
    for (const { name, sizeBytes: size } of batch) {
      blobs.push(name)
      bytes += size
    }
  }
  for await (const entries of backend.records.range({ gte: Uint8Array.of(0), lt: Uint8Array.of(0xff) })) {
    for (const { key, value } of entries) {
      const kind = String.fromCharCode(key[0])
      // Of servers that are open.
      if (kind === 'l') continue
      records[kind] = (records[kind] ?? 0) + 1
      bytes += key.length + value.length
    }
  }
  return { bytes, blobs: blobs.sort(), records }
}

export async function findingsOf(
  backend: StorageBackend,
  sampleEvery?: number,
): Promise<{ damages: Finding[]; notes: Finding[] }> {
  const findings = await collected(checkStore(backend, sampleEvery === undefined ? {} : { sampleEvery }))
  return {
    damages: findings.filter(({ severity }) => severity === 'damage'),
    notes: findings.filter(({ severity }) => severity === 'note'),
  }
}

/** Nothing is damaged. */
export async function assertSound(backend: StorageBackend): Promise<void> {
  assert.deepEqual((await findingsOf(backend)).damages, [])
}

/** The promise, or a failure naming what does not end. */
export async function within<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${PATIENCE_MS} ms`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for what is about to happen, however busy the machine is. */
export function until(isSo: () => boolean): Promise<void> {
  return eventually(isSo, 'what was waited for happens')
}
