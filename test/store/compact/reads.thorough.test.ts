import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { MB } from '../../../src/limits.ts'
import type { StorageBackend } from '../../../src/storage/backend.ts'
import { referTo } from '../graphs.ts'
import { type Made, openStore, put, readLines } from '../support.ts'
import { compact, PROJECT } from './support.ts'

/** Its closure has a plan in storage, and each upload a blob of its own. */
const UPLOADS = 24
const OBJECTS_OF_UPLOAD = 60
const RANDOM_BYTES = 1_500
const OBJECTS: number = UPLOADS * OBJECTS_OF_UPLOAD + 1
/** The plan's own parts: its header and tables, and its patch. */
const PLAN_READS_MAX = 3

const uploads: Made[][] = Array.from({ length: UPLOADS }, (_upload, number) =>
  Array.from({ length: OBJECTS_OF_UPLOAD }, (_object, at) => ({
    id: `${number}-${at}`,
    text: randomBytes(RANDOM_BYTES).toString('base64'),
  })),
)
const root: Made = { id: 'root', elements: referTo(uploads.flat().map(({ id }) => id)) }

/** A store like S3: a few large reads rather than many small ones. */
function counted(): { readonly backend: StorageBackend; readonly readsSince: () => number } {
  const { records, blobs } = memoryBackend()
  let reads = 0
  const counting = {
    readBytesPreferred: MB,
    put: blobs.put.bind(blobs),
    remove: blobs.remove.bind(blobs),
    list: blobs.list.bind(blobs),
    close: blobs.close.bind(blobs),
    read: (name: string, start: number, end: number) => {
      reads++
      return blobs.read(name, start, end)
    },
  }
  const readsSince = (): number => {
    const before = reads
    reads = 0
    return before
  }
  return { backend: { records, blobs: counting, close: () => Promise.resolve() }, readsSince }
}

test('a planned download after a merge takes one read for each megabyte, however many uploads there were', async () => {
  const { backend, readsSince } = counted()
  const first = await openStore(backend)
  for (const objects of uploads) await put(first.store, PROJECT, objects)
  await put(first.store, PROJECT, [root])
  const roots = [{ kind: 'version', id: '1', groupId: 'model', rootObjectId: root.id }] as const
  assert.equal((await compact(first.store, { roots }, { all: true })).packsAfter, 1)
  // After a restart nothing is in memory.
  const { store } = await first.reopen()
  readsSince()
  const selection = await store.closure(PROJECT, root.id, { signal: new AbortController().signal })
  assert.ok(selection?.plan !== undefined)
  const planReads = readsSince()
  assert.ok(planReads <= PLAN_READS_MAX, `${planReads} reads of the plan`)
  const storedBytes = selection.plan.storedBytes
  assert.ok(storedBytes > 2 * MB)
  assert.equal((await readLines(selection)).length, OBJECTS)
  // `readLines` reads everything twice, as lines and as gzip.
  const reads = readsSince()
  assert.ok(reads <= 2 * (Math.ceil(storedBytes / MB) + 2), `${reads} reads for ${storedBytes} bytes`)
  selection.release()
  await store.close()
})
