import { setImmediate as nextTurn } from 'node:timers/promises'
import { BlobExistsError, BlobNotFoundError, CORE_RECORD_LIMITS, StorageClosedError } from '../src/storage/backend.ts'
import type {
  BlobInfo, BlobStore, CallOptions, Change, CommitResult, Entry, RangeBounds, RecordLimits, RecordStore, StorageBackend,
} from '../src/storage/backend.ts'
import {
  checkBlobName, checkBlobPrefix, checkChange, checkEntries, checkInsideBlob, checkKeys, checkRange, checkReadRange,
} from '../src/storage/checks.ts'
import { abortableContent, closeContent } from '../src/storage/content.ts'
import { OrderedMap } from './ordered-map.ts'

/** Entries that are handled before others get a turn of the event loop. */
const SLICE_ENTRIES = 2_000
const RANGE_BATCH_ENTRIES = 1_000

/** Everything in the memory of this process: for tests, and for data that may be lost. Nothing outlives `close`. */
export function memoryBackend(): StorageBackend {
  const records = new MemoryRecords()
  const blobs = new MemoryBlobs()
  return {
    records,
    blobs,
    close: async () => {
      await Promise.all([records.close(), blobs.close()])
    },
  }
}

/** Keys and values are kept as strings of one byte a character: half the size of small typed arrays, and copied on the way in and out. */
class MemoryRecords implements RecordStore {
  readonly limits: RecordLimits = CORE_RECORD_LIMITS
  readonly #map = new OrderedMap<string>()
  #closed = false

  async getMany(keys: readonly Uint8Array[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    this.#check(options)
    checkKeys(keys, this.limits)
    const values: (Uint8Array | undefined)[] = []
    for (const key of keys) {
      if (values.length % SLICE_ENTRIES === SLICE_ENTRIES - 1) await this.#nextTurn(options)
      values.push(optionalBytes(this.#map.get(text(key))))
    }
    return values
  }

  async *range(bounds: RangeBounds, options: CallOptions = {}): AsyncIterable<readonly Entry[]> {
    this.#check(options)
    checkRange(bounds)
    const reverse = bounds.reverse === true
    let [gte, lt, left] = [text(bounds.gte), text(bounds.lt), bounds.limit ?? Infinity]
    while (left > 0) {
      const found = this.#map.slice(gte, lt, Math.min(left, RANGE_BATCH_ENTRIES), reverse)
      const last = found.at(-1)
      if (!last) return
      yield found.map(([key, value]) => ({ key: bytes(key), value: bytes(value) }))
      await this.#nextTurn(options)
      left -= found.length
      if (reverse) lt = last[0]
      else gte = `${last[0]}\0`
    }
  }

  async insertMany(entries: readonly Entry[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    this.#check(options)
    checkEntries(entries, this.limits)
    const found: (Uint8Array | undefined)[] = []
    for (const entry of entries) {
      if (found.length % SLICE_ENTRIES === SLICE_ENTRIES - 1) await this.#nextTurn(options)
      const key = text(entry.key)
      const held = this.#map.get(key)
      if (held === undefined) this.#map.set(key, text(entry.value))
      found.push(optionalBytes(held))
    }
    return found
  }

  async commit(change: Change, options: CallOptions = {}): Promise<CommitResult> {
    this.#check(options)
    checkChange(change, this.limits)
    const { put = [], remove = [], expect = [] } = change
    const conflicts = expect.flatMap(({ key, value }, at) => (this.#map.get(text(key)) === (value && text(value)) ? [] : [at]))
    if (conflicts.length > 0) return { ok: false, conflicts }
    for (const { key, value } of put) this.#map.set(text(key), text(value))
    for (const key of remove) this.#map.delete(text(key))
    return { ok: true }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#map.clear()
  }

  #check({ signal }: CallOptions): void {
    if (this.#closed) throw new StorageClosedError()
    signal?.throwIfAborted()
  }

  async #nextTurn(options: CallOptions): Promise<void> {
    await nextTurn()
    this.#check(options)
  }
}

interface MemoryBlob {
  readonly bytes: Uint8Array
  readonly modifiedAtMs: number
}

class MemoryBlobs implements BlobStore {
  readonly readBytesPreferred: number = 1_048_576
  readonly #blobs = new Map<string, MemoryBlob>()
  #closed = false

  async put(name: string, content: AsyncIterable<Uint8Array>, options: CallOptions & { sizeHint?: number } = {}): Promise<{ size: number }> {
    try {
      this.#check(name, options)
      if (this.#blobs.has(name)) throw new BlobExistsError(name)
    } catch (error) {
      await closeContent(content)
      throw error
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of abortableContent(content, options.signal)) chunks.push(Uint8Array.from(chunk))
    this.#check(name, options)
    if (this.#blobs.has(name)) throw new BlobExistsError(name)
    const bytes = Buffer.concat(chunks)
    this.#blobs.set(name, { bytes, modifiedAtMs: Date.now() })
    return { size: bytes.length }
  }

  async read(name: string, start: number, end: number, options: CallOptions = {}): Promise<Uint8Array> {
    this.#check(name, options)
    checkReadRange(start, end)
    const blob = this.#blobs.get(name)
    if (!blob) throw new BlobNotFoundError(name)
    checkInsideBlob(name, end, blob.bytes.length)
    return Uint8Array.prototype.slice.call(blob.bytes, start, end)
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) this.#check(name, {})
    for (const name of names) this.#blobs.delete(name)
  }

  async *list(prefix: string, options: CallOptions = {}): AsyncIterable<readonly BlobInfo[]> {
    if (this.#closed) throw new StorageClosedError()
    checkBlobPrefix(prefix)
    const names = [...this.#blobs.keys()].filter((name) => name.startsWith(prefix))
    for (let from = 0; from < names.length; from += RANGE_BATCH_ENTRIES) {
      options.signal?.throwIfAborted()
      yield names.slice(from, from + RANGE_BATCH_ENTRIES).flatMap((name) => this.#info(name))
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#blobs.clear()
  }

  #info(name: string): BlobInfo[] {
    const blob = this.#blobs.get(name)
    return blob ? [{ name, size: blob.bytes.length, modifiedAtMs: blob.modifiedAtMs }] : []
  }

  #check(name: string, { signal }: CallOptions): void {
    if (this.#closed) throw new StorageClosedError()
    checkBlobName(name)
    signal?.throwIfAborted()
  }
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
