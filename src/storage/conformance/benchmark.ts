import { randomBytes } from 'node:crypto'
import type { BlobStore, Entry, RecordStore, StorageBackend } from '../backend.ts'
import { freshPrefix } from './case.ts'

/** The performance of one backend, on this machine, in one process. 1 MB is 1,048,576 bytes. */
export interface StorageBenchmarkResult {
  /** Records that `insertMany` stores in a second. */
  readonly insertedRecordsPerSecond: number
  /** Records that `getMany` returns in a second. */
  readonly readRecordsPerSecond: number
  /** Records that `range` lists in a second. */
  readonly rangedRecordsPerSecond: number
  /** Commits of one record each, 32 callers at once. */
  readonly commitsPerSecond: number
  /** Of a single commit without other load. */
  readonly commitMedianMs: number
  /** Megabytes of blobs that `put` stores in a second. */
  readonly writtenMbPerSecond: number
  /** Megabytes of blobs that `read` returns in a second. */
  readonly readMbPerSecond: number
  /** Resident memory of the process at its highest, looked at between calls. */
  readonly residentMbPeak: number
}

/** The amounts that the benchmark of a backend writes and reads. */
export interface StorageBenchmarkOptions {
  /** Records of about 80 bytes. 100,000 */
  readonly records?: number
  /** Bytes of blobs, in blobs of 8 MiB. 256 MiB */
  readonly blobBytes?: number
}

const STEP = 1_000
const CALLERS = 32
const BLOB_BYTES = 8 * 1_048_576
const CHUNK_BYTES = 65_536

/** Measures a backend the way the core uses it. It leaves its records behind; `backend` stays open. */
export async function storageBenchmark(
  backend: StorageBackend,
  options: StorageBenchmarkOptions = {},
): Promise<StorageBenchmarkResult> {
  const { records = 100_000, blobBytes = 32 * BLOB_BYTES } = options
  await backend.ready?.()
  const memory = new MemoryPeak()
  const ofRecords = await measureRecords(backend.records, Math.ceil(records / STEP), memory)
  const ofBlobs = await measureBlobs(backend.blobs, Math.ceil(blobBytes / BLOB_BYTES), memory)
  return { ...ofRecords, ...ofBlobs, residentMbPeak: memory.peakMb }
}

class MemoryPeak {
  peakMb = 0

  look(): void {
    this.peakMb = Math.max(this.peakMb, process.memoryUsage.rss() / 1_048_576)
  }
}

type RecordFigures = Omit<StorageBenchmarkResult, 'writtenMbPerSecond' | 'readMbPerSecond' | 'residentMbPeak'>

async function measureRecords(store: RecordStore, steps: number, memory: MemoryPeak): Promise<RecordFigures> {
  const prefix = freshPrefix()
  const inserted = await perSecond(steps * STEP, async () => {
    for (let step = 0; step < steps; step++, memory.look()) await store.insertMany(entriesOf(prefix, step))
  })
  const read = await perSecond(steps * STEP, async () => {
    for (let step = 0; step < steps; step++, memory.look()) await store.getMany(scatteredKeys(prefix, step, steps))
  })
  const ranged = await perSecond(steps * STEP, async () => {
    for await (const batch of store.range({ gte: Buffer.from(prefix), lt: Buffer.from(`${prefix}~`) }))
      if (batch.length > 0) memory.look()
  })
  const commits = await perSecond(CALLERS * 20, async () => {
    await Promise.all(
      Array.from({ length: CALLERS }, async (_, caller) => {
        for (let round = 0; round < 20; round++) await store.commit({ put: [entryOf(prefix, -1 - caller)] })
      }),
    )
  })
  return {
    insertedRecordsPerSecond: inserted,
    readRecordsPerSecond: read,
    rangedRecordsPerSecond: ranged,
    commitsPerSecond: commits,
    commitMedianMs: await medianMs(50, () => store.commit({ put: [entryOf(prefix, -1)] })),
  }
}

async function measureBlobs(
  store: BlobStore,
  blobs: number,
  memory: MemoryPeak,
): Promise<{ writtenMbPerSecond: number; readMbPerSecond: number }> {
  const names = Array.from({ length: blobs }, (_, at) => `benchmark/${freshPrefix()}-${at}`)
  const megabytes = (blobs * BLOB_BYTES) / 1_048_576
  const written = await perSecond(megabytes, async () => {
    for (const name of names) {
      await store.put(name, incompressible(BLOB_BYTES), { sizeHintBytes: BLOB_BYTES })
      memory.look()
    }
  })
  const step = store.readBytesPreferred
  const read = await perSecond(megabytes, async () => {
    for (const name of names) {
      for (let start = 0; start < BLOB_BYTES; start += step)
        await store.read(name, start, Math.min(start + step, BLOB_BYTES))
      memory.look()
    }
  })
  await store.remove(names)
  return { writtenMbPerSecond: written, readMbPerSecond: read }
}

/** Keys in no order, as ids of objects are: the number's digits backwards. */
function entryOf(prefix: string, number: number): Entry {
  return {
    key: Buffer.from(
      `${prefix}/${Array.from(String(number).padStart(9, '0')).toReversed().join('')}-of-an-object-with-a-long-id`,
    ),
    value: Buffer.alloc(23, number & 0xff),
  }
}

function entriesOf(prefix: string, step: number): Entry[] {
  return Array.from({ length: STEP }, (_, at) => entryOf(prefix, step * STEP + at))
}

function scatteredKeys(prefix: string, step: number, steps: number): Uint8Array[] {
  return Array.from({ length: STEP }, (_, at) => entryOf(prefix, (step + at * 7_919) % (steps * STEP)).key)
}

async function* incompressible(bytes: number): AsyncGenerator<Uint8Array> {
  const chunk = randomBytes(CHUNK_BYTES)
  for (let sent = 0; sent < bytes; sent += CHUNK_BYTES) yield chunk
}

async function perSecond(amount: number, work: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await work()
  return (amount / (performance.now() - startMs)) * 1_000
}

async function medianMs(times: number, work: () => Promise<unknown>): Promise<number> {
  const took: number[] = []
  for (let time = 0; time < times; time++) {
    const startMs = performance.now()
    await work()
    took.push(performance.now() - startMs)
  }
  return took.toSorted((a, b) => a - b)[times >> 1] ?? 0
}
