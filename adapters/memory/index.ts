import { setImmediate as nextTurn } from 'node:timers/promises'
import type {
  BlobInfo,
  BlobStore,
  CallOptions,
  Change,
  CommitResult,
  Conflict,
  Entry,
  RangeBounds,
  RecordStore,
  StorageBackend,
} from '../../src/storage/backend.ts'
import type { BlobDriver, OpenedBlobs, OpenedRecords, RecordDriver } from '../../src/storage/driver.ts'
import { guardedBackend, guardedBlobs, guardedRecords } from '../../src/storage/guard.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../../src/storage/storage-errors.ts'
import { OrderedMap } from './ordered-map.ts'

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

/**
 * Keys and values are kept as strings of one byte a character: half the size of small typed arrays, and copied on the
 * way in and out.
 */
class MemoryRecords implements RecordDriver {
  readonly #map = new OrderedMap<string>()

  getMany(keys: readonly Uint8Array[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    return inSlices(keys, signal, (key) => optionalBytes(this.#map.get(text(key))))
  }

  async *range(bounds: RangeBounds): AsyncGenerator<readonly Entry[]> {
    const reverse = bounds.reverse === true
    let [gte, lt, left] = [text(bounds.gte), text(bounds.lt), bounds.limit ?? Infinity]
    while (left > 0) {
      const found = firstBytes(this.#map.slice(gte, lt, Math.min(left, RANGE_BATCH_ENTRIES), reverse))
      const last = found.at(-1)
      if (!last) return
      yield found.map(([key, value]) => ({ key: bytes(key), value: bytes(value) }))
      await nextTurn()
      left -= found.length
      if (reverse) lt = last[0]
      else gte = `${last[0]}\0`
    }
  }

  insertMany(entries: readonly Entry[], { signal }: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    return inSlices(entries, signal, ({ key, value }) => this.#insert(text(key), value))
  }

  async commit({ put, remove, expect }: Required<Change>): Promise<CommitResult> {
    const conflicts = expect.flatMap(({ key, value }, index): Conflict[] => {
      const held = this.#map.get(text(key))
      return held === (value && text(value)) ? [] : [{ index, value: optionalBytes(held) }]
    })
    if (conflicts.length > 0) return { ok: false, conflicts }
    for (const { key, value } of put) this.#map.set(text(key), text(value))
    for (const key of remove) this.#map.delete(text(key))
    return { ok: true }
  }

  #insert(key: string, value: Uint8Array): Uint8Array | undefined {
    const held = this.#map.get(key)
    if (held === undefined) this.#map.set(key, text(value))
    return optionalBytes(held)
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

/** As many entries as `RANGE_BATCH_BYTES` allows, and at least one. */
function firstBytes(found: readonly [string, string][]): readonly [string, string][] {
  let bytes = 0
  const end = found.findIndex(([, value], at) => (bytes += value.length) > RANGE_BATCH_BYTES && at > 0)
  return end === -1 ? found : found.slice(0, end)
}

function text(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1')
}

function bytes(value: string): Uint8Array {
  return Buffer.from(value, 'latin1')
}

function optionalBytes(value: string | undefined): Uint8Array | undefined {
  return value === undefined ? undefined : bytes(value)
}
