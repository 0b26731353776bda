import type { BlobInfo, CallOptions } from '../../src/storage/backend.ts'
import type { BlobDriver } from '../../src/storage/driver.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../../src/storage/storage-errors.ts'
import { passErrno } from '../common/errno.ts'
import type { WriteGuard } from '../common/write-guard.ts'
import { rechunk } from '../common/rechunk.ts'
import {
  CHUNK_BYTES,
  chunkKey,
  chunkKeys,
  decodeMark,
  encodeMark,
  idOfPending,
  nameKey,
  nameOfKey,
  newBlobId,
  PENDING_RANGE,
  pendingKey,
} from './blob-keys.ts'
import type { BlobMark } from './blob-keys.ts'
import type { LevelDatabase } from './database.ts'
import type { LevelWriter } from './level-writer.ts'

/** The chunks that one put holds in memory, and writes in one batch. */
const PUT_CHUNKS = 4
const PUT_BYTES: number = PUT_CHUNKS * CHUNK_BYTES
/** Chunks that one read asks for at a time: more would hold twice the bytes of the answer. */
const READ_CHUNKS = 4
/** Blobs of one batch of removals; one blob can be thousands of chunks. */
const REMOVE_STEP = 16
const LIST_BATCH_ENTRIES = 1_000

export interface BlobsPart {
  readonly database: LevelDatabase
  readonly writer: LevelWriter
  readonly guard: WriteGuard
}

/** Blobs in a LevelDB of their own, cut into chunks. */
export class LevelBlobs implements BlobDriver {
  readonly #part: BlobsPart

  constructor(part: BlobsPart) {
    this.#part = part
  }

  async put(name: string, content: AsyncIterable<Uint8Array>, { signal }: CallOptions): Promise<{ sizeBytes: number }> {
    if (await passErrno(this.#part.database.get(nameKey(name)))) throw new BlobExistsError(name)
    return putChunks(this.#part, name, content, signal)
  }

  async read(name: string, start: number, end: number, { signal }: CallOptions): Promise<Uint8Array> {
    const { database } = this.#part
    const value = await passErrno(database.get(nameKey(name)))
    if (!value) throw new BlobNotFoundError(name)
    const mark = decodeMark(name, value)
    if (end > mark.sizeBytes) throw new BlobRangeError(name, end, mark.sizeBytes)
    return readChunks(database, name, mark, start, end, signal)
  }

  async remove(names: readonly string[]): Promise<void> {
    for (let from = 0; from < names.length; from += REMOVE_STEP)
      await removeStep(this.#part.writer, names.slice(from, from + REMOVE_STEP))
  }

  async *list(prefix: string): AsyncGenerator<readonly BlobInfo[]> {
    const iterator = this.#part.database.iterator({
      gte: nameKey(prefix),
      lt: Buffer.concat([nameKey(prefix), Buffer.from([0xff])]),
    })
    try {
      for (;;) {
        const batch = await passErrno(iterator.nextv(LIST_BATCH_ENTRIES))
        if (batch.length === 0) return
        yield batch.map(([key, value]) => infoOf(nameOfKey(key), value))
      }
    } finally {
      await iterator.close()
    }
  }
}

/** Removes the chunks of puts that a crash cut short. Nothing else may use the database meanwhile. */
export async function removeLeftovers(database: LevelDatabase): Promise<void> {
  for await (const key of database.keys(PENDING_RANGE)) {
    const id = idOfPending(key)
    await database.clear({ gte: chunkKey(id, 0), lt: Buffer.concat([chunkKey(id, 0xffff_ffff), Buffer.from([0])]) })
    await database.del(key)
  }
}

async function putChunks(
  part: BlobsPart,
  name: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<{ sizeBytes: number }> {
  const id = newBlobId()
  let [size, chunks] = [0, 0]
  let rest: Uint8Array = new Uint8Array(0)
  try {
    for await (const buffer of rechunk(content, Buffer.allocUnsafeSlow(PUT_BYTES))) {
      await part.guard.checkForBlob()
      // A buffer that is not full is the last one: it goes into the batch that makes the blob visible.
      if (buffer.length < PUT_BYTES) rest = buffer
      else {
        chunks += PUT_CHUNKS
        await writeChunks(part.writer, id, chunks - PUT_CHUNKS, buffer, signal)
      }
      size += buffer.length
    }
    await publish(part.writer, name, { id, sizeBytes: size, modifiedAtMs: Date.now() }, rest, signal)
    return { sizeBytes: size }
  } catch (error) {
    if (chunks > 0) await removeChunks(part.writer, id, chunks)
    throw error
  }
}

async function writeChunks(
  writer: LevelWriter,
  id: Uint8Array,
  index: number,
  bytes: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  await writer.run(
    {
      reads: [],
      bytes: bytes.length,
      apply: (view) => {
        if (index === 0) view.put(pendingKey(id), new Uint8Array(0))
        for (const [at, chunk] of chunksOf(bytes).entries()) view.put(chunkKey(id, index + at), chunk)
      },
    },
    signal,
  )
}

async function publish(
  writer: LevelWriter,
  name: string,
  mark: BlobMark,
  rest: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  const written = (mark.sizeBytes - rest.length) / CHUNK_BYTES
  await writer.run(
    {
      reads: [nameKey(name)],
      bytes: rest.length,
      apply: (view) => {
        if (view.get(nameKey(name))) throw new BlobExistsError(name)
        for (const [at, chunk] of chunksOf(rest).entries()) view.put(chunkKey(mark.id, written + at), chunk)
        view.put(nameKey(name), encodeMark(mark))
        if (written > 0) view.remove(pendingKey(mark.id))
      },
    },
    signal,
  )
}

/** After a put that failed. Where this fails too, the next opening does it. */
async function removeChunks(writer: LevelWriter, id: Uint8Array, count: number): Promise<void> {
  const apply = (view: { remove(key: Uint8Array): void }): void => {
    for (const key of chunkKeys(id, 0, count)) view.remove(key)
    view.remove(pendingKey(id))
  }
  await writer.run({ reads: [], bytes: 0, apply }).catch(() => undefined)
}

async function removeStep(writer: LevelWriter, names: readonly string[]): Promise<void> {
  await writer.run({
    reads: names.map(nameKey),
    bytes: 0,
    apply: (view) => {
      for (const name of names) {
        const value = view.get(nameKey(name))
        if (!value) continue
        const { id, sizeBytes } = decodeMark(name, value)
        for (const key of chunkKeys(id, 0, Math.ceil(sizeBytes / CHUNK_BYTES))) view.remove(key)
        view.remove(nameKey(name))
      }
    },
  })
}

async function readChunks(
  database: LevelDatabase,
  name: string,
  { id }: BlobMark,
  start: number,
  end: number,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(end - start)
  const last = end > start ? Math.ceil(end / CHUNK_BYTES) : 0
  for (let index = Math.floor(start / CHUNK_BYTES); index < last; index += READ_CHUNKS) {
    signal?.throwIfAborted()
    const keys = chunkKeys(id, index, Math.min(index + READ_CHUNKS, last))
    const chunks = await passErrno(database.getMany(keys, { fillCache: false } as never))
    for (const [at, chunk] of chunks.entries())
      copyChunk(bytes, (index + at) * CHUNK_BYTES - start, await presentChunk(database, name, chunk))
  }
  return bytes
}

/** Copies the part of `chunk` inside the answer; `chunk` starts at `offset` of the answer (negative for the first). */
function copyChunk(answer: Uint8Array, offset: number, chunk: Uint8Array): void {
  const from = Math.max(-offset, 0)
  answer.set(chunk.subarray(from, Math.max(Math.min(chunk.length, answer.length - offset), from)), offset + from)
}

/** A chunk that is not there was removed with its blob a moment ago, or lost. */
async function presentChunk(database: LevelDatabase, name: string, chunk: Uint8Array | undefined): Promise<Uint8Array> {
  if (chunk) return chunk
  if (!(await database.get(nameKey(name)))) throw new BlobNotFoundError(name)
  throw new Error(`a chunk of blob ${name} is missing`)
}

function chunksOf(bytes: Uint8Array): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / CHUNK_BYTES) }, (_, at) =>
    bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES),
  )
}

function infoOf(name: string, value: Uint8Array): BlobInfo {
  const { sizeBytes, modifiedAtMs } = decodeMark(name, value)
  return { name, sizeBytes, modifiedAtMs }
}
