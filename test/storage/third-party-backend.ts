import {
  BlobExistsError,
  BlobNotFoundError,
  CORE_RECORD_LIMITS,
  StorageClosedError,
} from '../../src/storage/backend.ts'
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
import {
  checkBlobName,
  checkBlobPrefix,
  checkChange,
  checkEntries,
  checkInsideBlob,
  checkKeys,
  checkRange,
  checkReadRange,
} from '../../src/storage/checks.ts'
import { abortableContent, closeContent } from '../../src/storage/content.ts'

/** A backend as somebody else would write it, with nothing from `adapters`: two maps and the rules of the seams. The suites hold it to the contract. */
export function mapBackend(): StorageBackend {
  const [records, blobs] = [new MapRecords(), new MapBlobs()]
  return { records, blobs, close: async () => void (await Promise.all([records.close(), blobs.close()])) }
}

/** Knows the calls that are under way, and lets none begin after closing. */
class Calls {
  readonly #open = new Set<Promise<unknown>>()
  #closed = false

  check(signal?: AbortSignal): void {
    if (this.#closed) throw new StorageClosedError()
    signal?.throwIfAborted()
  }

  async run<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    this.check(signal)
    const running = call()
    this.#open.add(running)
    return running.finally(() => this.#open.delete(running))
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#open)
  }
}

class MapRecords implements RecordStore {
  readonly limits = CORE_RECORD_LIMITS
  readonly #calls = new Calls()
  readonly #map = new Map<string, string>()

  getMany(keys: readonly Uint8Array[], { signal }: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#calls.run(signal, async () => {
      checkKeys(keys, this.limits)
      return keys.map((key) => optionalBytes(this.#map.get(hex(key))))
    })
  }

  async *range(bounds: RangeBounds, { signal }: CallOptions = {}): AsyncIterable<readonly Entry[]> {
    this.#calls.check(signal)
    checkRange(bounds)
    const inside = [...this.#map]
      .filter(([key]) => key >= hex(bounds.gte) && key < hex(bounds.lt))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
    const entries = (bounds.reverse === true ? inside.toReversed() : inside).slice(0, bounds.limit)
    for (let from = 0; from < entries.length; from += 500) {
      this.#calls.check(signal)
      yield entries.slice(from, from + 500).map(([key, value]) => ({ key: bytes(key), value: bytes(value) }))
    }
  }

  insertMany(entries: readonly Entry[], { signal }: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#calls.run(signal, async () => {
      checkEntries(entries, this.limits)
      return entries.map(({ key, value }) => {
        const held = this.#map.get(hex(key))
        if (held === undefined) this.#map.set(hex(key), hex(value))
        return optionalBytes(held)
      })
    })
  }

  commit(change: Change, { signal }: CallOptions = {}): Promise<CommitResult> {
    return this.#calls.run(signal, async () => {
      checkChange(change, this.limits)
      const { put = [], remove = [], expect = [] } = change
      const conflicts = expect.flatMap(({ key, value }, at) =>
        this.#map.get(hex(key)) === (value && hex(value)) ? [] : [at],
      )
      if (conflicts.length > 0) return { ok: false, conflicts }
      for (const { key, value } of put) this.#map.set(hex(key), hex(value))
      for (const key of remove) this.#map.delete(hex(key))
      return { ok: true }
    })
  }

  close(): Promise<void> {
    return this.#calls.close()
  }
}

class MapBlobs implements BlobStore {
  readonly readBytesPreferred = 1_048_576
  readonly #calls = new Calls()
  readonly #map = new Map<string, { readonly content: Buffer; readonly modifiedAtMs: number }>()

  put(name: string, content: AsyncIterable<Uint8Array>, { signal }: CallOptions = {}): Promise<{ size: number }> {
    const putting = this.#calls.run(signal, async () => {
      this.#checkFree(name)
      const chunks: Uint8Array[] = []
      for await (const chunk of abortableContent(content, signal)) chunks.push(Uint8Array.from(chunk))
      this.#checkFree(name)
      this.#map.set(name, { content: Buffer.concat(chunks), modifiedAtMs: Date.now() })
      return { size: chunks.reduce((size, chunk) => size + chunk.length, 0) }
    })
    return putting.finally(() => void closeContent(content))
  }

  read(name: string, start: number, end: number, { signal }: CallOptions = {}): Promise<Uint8Array> {
    return this.#calls.run(signal, async () => {
      checkBlobName(name)
      checkReadRange(start, end)
      const blob = this.#map.get(name)
      if (!blob) throw new BlobNotFoundError(name)
      checkInsideBlob(name, end, blob.content.length)
      return Uint8Array.from(blob.content.subarray(start, end))
    })
  }

  remove(names: readonly string[]): Promise<void> {
    return this.#calls.run(undefined, async () => {
      for (const name of names) checkBlobName(name)
      for (const name of names) this.#map.delete(name)
    })
  }

  async *list(prefix: string, { signal }: CallOptions = {}): AsyncIterable<readonly BlobInfo[]> {
    this.#calls.check(signal)
    checkBlobPrefix(prefix)
    const batch = [...this.#map].filter(([name]) => name.startsWith(prefix))
    if (batch.length > 0)
      yield batch.map(([name, { content, modifiedAtMs }]) => ({ name, size: content.length, modifiedAtMs }))
  }

  close(): Promise<void> {
    return this.#calls.close()
  }

  #checkFree(name: string): void {
    checkBlobName(name)
    if (this.#map.has(name)) throw new BlobExistsError(name)
  }
}

const hex = (value: Uint8Array): string => Buffer.from(value).toString('hex')
const bytes = (text: string): Uint8Array => Buffer.from(text, 'hex')
const optionalBytes = (text: string | undefined): Uint8Array | undefined =>
  text === undefined ? undefined : bytes(text)
