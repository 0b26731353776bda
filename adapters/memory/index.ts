import { setImmediate as nextTurn } from 'node:timers/promises'
import type {
  BlobInfo,
  BlobStore,
  CallOptions,
  Change,
  CommitResult,
  Entry,
  RangeBounds,
  RecordStore,
  StorageBackend,
} from '../../src/storage/backend.ts'
import type { BlobDriver, OpenedBlobs, OpenedRecords, RecordDriver } from '../../src/storage/driver.ts'
import { guardedBackend, guardedBlobs, guardedRecords } from '../../src/storage/guard.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../../src/storage/storage-errors.ts'
import { RecordMap } from './record-map.ts'

/** Entries that are handled before others get a turn of the event loop. */
const SLICE_ENTRIES = 2_000
const RANGE_BATCH_ENTRIES = 1_000
const RANGE_BATCH_BYTES = 1_048_576

/**
 * Everything in the memory of this process: for tests, and for data that may be lost. Nothing outlives `close`.
 *
 * @example
 * import { createObjectService, openAccess } from 'stowage'
 * import { memoryBackend } from 'stowage/memory'
 *
 * const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
 * await service.ready()
 * await service.close()
 */
export function memoryBackend(): StorageBackend {
  return guardedBackend({
    isPersistent: false,
    open: async () => ({ records: new MemoryRecords(), blobs: new MemoryBlobs(), close: async () => undefined }),
  })
}

/** Records alone in the memory of this process, for `combinedBackend`. Nothing outlives `close`. */
export function memoryRecords(): RecordStore {
  const open = async (): Promise<OpenedRecords> => ({ records: new MemoryRecords(), close: async () => undefined })
  return guardedRecords({ isPersistent: false, place: 'the memory of this process', open })
}

/** Blobs alone in the memory of this process, for `combinedBackend`. Nothing outlives `close`. */
export function memoryBlobs(): BlobStore {
  const open = async (): Promise<OpenedBlobs> => ({ blobs: new MemoryBlobs(), close: async () => undefined })
  return guardedBlobs({ isPersistent: false, place: 'the memory of this process', open })
}

class MemoryRecords implements RecordDriver {
  readonly #map = new RecordMap()

  getMany(keys: readonly Uint8Array[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    return inSlices(keys, signal, (key) => this.#map.get(key))
  }

  async *range(bounds: RangeBounds): AsyncGenerator<readonly Entry[]> {
    let [{ gte, lt }, left] = [bounds, bounds.limit ?? Infinity]
    while (left > 0) {
      const found = this.#map.slice({ ...bounds, gte, lt }, Math.min(left, RANGE_BATCH_ENTRIES), RANGE_BATCH_BYTES)
      const last = found.at(-1)
      if (!last) return
      // Copies: what was yielded belongs to the caller.
      if (bounds.reverse === true) lt = Uint8Array.from(last.key)
      else gte = Buffer.concat([last.key, Uint8Array.of(0)])
      left -= found.length
      yield found
      await nextTurn()
    }
  }

  insertMany(entries: readonly Entry[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    return inSlices(entries, signal, (entry) => this.#map.insert(entry))
  }

  async commit(change: Required<Change>): Promise<CommitResult> {
    return this.#map.commit(change)
  }
}

interface MemoryBlob {
  readonly bytes: Uint8Array
  readonly modifiedAtMs: number
}

class MemoryBlobs implements BlobDriver {
  readonly #blobs = new Map<string, MemoryBlob>()

  async put(name: string, content: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }> {
    this.#checkFree(name)
    const chunks: Uint8Array[] = []
    for await (const chunk of content) chunks.push(Uint8Array.from(chunk))
    this.#checkFree(name)
    const whole = Buffer.concat(chunks)
    this.#blobs.set(name, { bytes: whole, modifiedAtMs: Date.now() })
    return { sizeBytes: whole.length }
  }

  async read(name: string, start: number, end: number): Promise<Uint8Array> {
    const blob = this.#blobs.get(name)
    if (!blob) throw new BlobNotFoundError(name)
    if (end > blob.bytes.length) throw new BlobRangeError(name, end, blob.bytes.length)
    return Uint8Array.prototype.slice.call(blob.bytes, start, end)
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) this.#blobs.delete(name)
  }

  async *list(prefix: string): AsyncGenerator<readonly BlobInfo[]> {
    const names = [...this.#blobs.keys()].filter((name) => name.startsWith(prefix))
    for (let from = 0; from < names.length; from += RANGE_BATCH_ENTRIES)
      yield names.slice(from, from + RANGE_BATCH_ENTRIES).flatMap((name) => this.#info(name))
  }

  #checkFree(name: string): void {
    if (this.#blobs.has(name)) throw new BlobExistsError(name)
  }

  #info(name: string): BlobInfo[] {
    const blob = this.#blobs.get(name)
    return blob ? [{ name, sizeBytes: blob.bytes.length, modifiedAtMs: blob.modifiedAtMs }] : []
  }
}

/** `one` for each item, with turns of the event loop for others between slices. */
async function inSlices<T, R>(items: readonly T[], signal: AbortSignal | undefined, one: (item: T) => R): Promise<R[]> {
  const results: R[] = []
  for (let from = 0; from < items.length; from += SLICE_ENTRIES) {
    if (from > 0) await nextTurn()
    signal?.throwIfAborted()
    for (const item of items.slice(from, from + SLICE_ENTRIES)) results.push(one(item))
  }
  return results
}
