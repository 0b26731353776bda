import {
  type BlobDriver,
  BlobExistsError,
  type BlobInfo,
  BlobNotFoundError,
  BlobRangeError,
  type Change,
  type CommitResult,
  type Conflict,
  type Entry,
  guardedBackend,
  type RangeBounds,
  type RecordDriver,
  type StorageBackend,
} from '../../src/storage/index.ts'

/** A backend as somebody else would write it, with the exports of `stowage/storage` alone: two maps under the guard. */
export function mapBackend(): StorageBackend {
  return guardedBackend({
    isPersistent: false,
    open: async () => ({ records: new MapRecords(), blobs: new MapBlobs(), close: async () => undefined }),
  })
}

class MapRecords implements RecordDriver {
  readonly #map = new Map<string, string>()

  async getMany(keys: readonly Uint8Array[]): Promise<readonly (Uint8Array | undefined)[]> {
    return keys.map((key) => optionalBytes(this.#map.get(hex(key))))
  }

  async *range(bounds: RangeBounds): AsyncIterable<readonly Entry[]> {
    const inside = [...this.#map]
      .filter(([key]) => key >= hex(bounds.gte) && key < hex(bounds.lt))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
    const entries = (bounds.reverse === true ? inside.toReversed() : inside).slice(0, bounds.limit)
    for (let from = 0; from < entries.length; from += 500)
      yield entries.slice(from, from + 500).map(([key, value]) => ({ key: bytes(key), value: bytes(value) }))
  }

  async insertMany(entries: readonly Entry[]): Promise<readonly (Uint8Array | undefined)[]> {
    return entries.map(({ key, value }) => {
      const held = this.#map.get(hex(key))
      if (held === undefined) this.#map.set(hex(key), hex(value))
      return optionalBytes(held)
    })
  }

  async commit({ put, remove, expect }: Required<Change>): Promise<CommitResult> {
    const conflicts = expect.flatMap(({ key, value }, index): Conflict[] => {
      const held = this.#map.get(hex(key))
      return held === (value && hex(value)) ? [] : [{ index, value: optionalBytes(held) }]
    })
    if (conflicts.length > 0) return { ok: false, conflicts }
    for (const { key, value } of put) this.#map.set(hex(key), hex(value))
    for (const key of remove) this.#map.delete(hex(key))
    return { ok: true }
  }
}

class MapBlobs implements BlobDriver {
  readonly #map = new Map<string, { readonly content: Buffer; readonly modifiedAtMs: number }>()

  async put(name: string, content: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number }> {
    const chunks: Uint8Array[] = []
    for await (const chunk of content) chunks.push(Uint8Array.from(chunk))
    if (this.#map.has(name)) throw new BlobExistsError(name)
    const whole = Buffer.concat(chunks)
    this.#map.set(name, { content: whole, modifiedAtMs: Date.now() })
    return { sizeBytes: whole.length }
  }

  async read(name: string, start: number, end: number): Promise<Uint8Array> {
    const blob = this.#map.get(name)
    if (!blob) throw new BlobNotFoundError(name)
    if (end > blob.content.length) throw new BlobRangeError(name, end, blob.content.length)
    return Uint8Array.from(blob.content.subarray(start, end))
  }

  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) this.#map.delete(name)
  }

  async *list(prefix: string): AsyncIterable<readonly BlobInfo[]> {
    yield [...this.#map]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, { content, modifiedAtMs }]) => ({ name, sizeBytes: content.length, modifiedAtMs }))
  }
}

const hex = (value: Uint8Array): string => Buffer.from(value).toString('hex')
const bytes = (text: string): Uint8Array => Buffer.from(text, 'hex')
const optionalBytes = (text: string | undefined): Uint8Array | undefined =>
  text === undefined ? undefined : bytes(text)
