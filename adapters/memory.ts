import { setImmediate as nextTurn } from 'node:timers/promises'
import { BlobExistsError, BlobNotFoundError, CORE_RECORD_LIMITS } from '../src/storage/backend.ts'
import type {
  BlobInfo,
  BlobStore,
  CallOptions,
  Change,
  CommitResult,
  Entry,
  RangeBounds,
  RecordLimits,
  RecordStore,
  StorageBackend,
} from '../src/storage/backend.ts'
import {
  checkBlobName,
  checkBlobPrefix,
  checkChange,
  checkEntries,
  checkInsideBlob,
  checkKeys,
  checkRange,
  checkReadRange,
} from '../src/storage/checks.ts'
import { abortableContent, closeContent } from '../src/storage/content.ts'
import { Gate } from './gate.ts'
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
  readonly #gate = new Gate()
  readonly #map = new OrderedMap<string>()

  getMany(keys: readonly Uint8Array[], { signal }: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#gate.pass(signal, async () => {
      checkKeys(keys, this.limits)
      return inSlices(keys, signal, (key) => optionalBytes(this.#map.get(text(key))))
    })
  }

  async *range(bounds: RangeBounds, { signal }: CallOptions = {}): AsyncIterable<readonly Entry[]> {
    this.#gate.check(signal)
    checkRange(bounds)
    const reverse = bounds.reverse === true
    let [gte, lt, left] = [text(bounds.gte), text(bounds.lt), bounds.limit ?? Infinity]
    while (left > 0) {
      const found = this.#map.slice(gte, lt, Math.min(left, RANGE_BATCH_ENTRIES), reverse)
      const last = found.at(-1)
      if (!last) return
      yield found.map(([key, value]) => ({ key: bytes(key), value: bytes(value) }))
      await nextTurn()
      this.#gate.check(signal)
      left -= found.length
      if (reverse) lt = last[0]
      else gte = `${last[0]}\0`
    }
  }

  insertMany(entries: readonly Entry[], { signal }: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#gate.pass(signal, async () => {
      checkEntries(entries, this.limits)
      return inSlices(entries, signal, ({ key, value }) => this.#insert(text(key), value))
    })
  }

  commit(change: Change, { signal }: CallOptions = {}): Promise<CommitResult> {
    return this.#gate.pass(signal, async () => {
      checkChange(change, this.limits)
      const { put = [], remove = [], expect = [] } = change
      const conflicts = expect.flatMap(({ key, value }, at) =>
        this.#map.get(text(key)) === (value && text(value)) ? [] : [at],
      )
      if (conflicts.length > 0) return { ok: false, conflicts }
      for (const { key, value } of put) this.#map.set(text(key), text(value))
      for (const key of remove) this.#map.delete(text(key))
      return { ok: true }
    })
  }

  close(): Promise<void> {
    return this.#gate.close(async () => this.#map.clear())
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

class MemoryBlobs implements BlobStore {
  readonly readBytesPreferred: number = 1_048_576
  readonly #gate = new Gate()
  readonly #blobs = new Map<string, MemoryBlob>()

  async put(name: string, content: AsyncIterable<Uint8Array>, { signal }: CallOptions = {}): Promise<{ size: number }> {
    let started = false
    try {
      return await this.#gate.pass(signal, async () => {
        checkBlobName(name)
        this.#checkFree(name)
        started = true
        const chunks: Uint8Array[] = []
        for await (const chunk of abortableContent(content, signal)) chunks.push(Uint8Array.from(chunk))
        this.#checkFree(name)
        const whole = Buffer.concat(chunks)
        this.#blobs.set(name, { bytes: whole, modifiedAtMs: Date.now() })
        return { size: whole.length }
      })
    } finally {
      if (!started) await closeContent(content)
    }
  }

  read(name: string, start: number, end: number, { signal }: CallOptions = {}): Promise<Uint8Array> {
    return this.#gate.pass(signal, async () => {
      checkBlobName(name)
      checkReadRange(start, end)
      const blob = this.#blobs.get(name)
      if (!blob) throw new BlobNotFoundError(name)
      checkInsideBlob(name, end, blob.bytes.length)
      return Uint8Array.prototype.slice.call(blob.bytes, start, end)
    })
  }

  remove(names: readonly string[]): Promise<void> {
    return this.#gate.pass(undefined, async () => {
      for (const name of names) checkBlobName(name)
      for (const name of names) this.#blobs.delete(name)
    })
  }

  async *list(prefix: string, { signal }: CallOptions = {}): AsyncIterable<readonly BlobInfo[]> {
    this.#gate.check(signal)
    checkBlobPrefix(prefix)
    const names = [...this.#blobs.keys()].filter((name) => name.startsWith(prefix))
    for (let from = 0; from < names.length; from += RANGE_BATCH_ENTRIES) {
      this.#gate.check(signal)
      const batch = names.slice(from, from + RANGE_BATCH_ENTRIES).flatMap((name) => this.#info(name))
      if (batch.length > 0) yield batch
    }
  }

  close(): Promise<void> {
    return this.#gate.close(async () => this.#blobs.clear())
  }

  #checkFree(name: string): void {
    if (this.#blobs.has(name)) throw new BlobExistsError(name)
  }

  #info(name: string): BlobInfo[] {
    const blob = this.#blobs.get(name)
    return blob ? [{ name, size: blob.bytes.length, modifiedAtMs: blob.modifiedAtMs }] : []
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

function text(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1')
}

function bytes(value: string): Uint8Array {
  return Buffer.from(value, 'latin1')
}

function optionalBytes(value: string | undefined): Uint8Array | undefined {
  return value === undefined ? undefined : bytes(value)
}
