import type {
  BlobInfo,
  BlobStore,
  CallOptions,
  Change,
  CommitResult,
  Entry,
  PutOptions,
  RangeBounds,
  RecordStore,
  StorageBackend,
} from './backend.ts'

/** Decides about each call of a storage before it is made. */
export interface Gate {
  /** `undefined` if records may be read at once; otherwise rejects if they may not. */
  read(): Promise<void> | undefined
  /** The same for records and blobs that are written or removed. */
  write(): Promise<void> | undefined
}

/**
 * The storage behind a gate. Blobs can always be read: they never change. Calls that are under way when the gate shuts
 * go on.
 */
export function gatedBackend(backend: StorageBackend, gate: Gate): StorageBackend {
  return {
    records: new GatedRecords(backend.records, gate),
    blobs: new GatedBlobs(backend.blobs, gate),
    ready: async () => backend.ready?.(),
    close: () => backend.close(),
  }
}

class GatedRecords implements RecordStore {
  readonly limits: RecordStore['limits']
  readonly isPersistent: boolean | undefined
  readonly place: string | undefined
  readonly #records: RecordStore
  readonly #gate: Gate

  constructor(records: RecordStore, gate: Gate) {
    this.limits = records.limits
    this.isPersistent = records.isPersistent
    this.place = records.place
    this.#records = records
    this.#gate = gate
  }

  async ready(): Promise<void> {
    await this.#records.ready?.()
  }

  getMany(keys: readonly Uint8Array[], options?: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    const wait = this.#gate.read()
    return wait === undefined ? this.#records.getMany(keys, options) : this.#getManyAfter(wait, keys, options)
  }

  async *range(bounds: RangeBounds, options?: CallOptions): AsyncGenerator<readonly Entry[]> {
    await this.#gate.read()
    for await (const entries of this.#records.range(bounds, options)) {
      await this.#gate.read()
      yield entries
    }
  }

  async insertMany(entries: readonly Entry[], options?: CallOptions): Promise<readonly (Uint8Array | undefined)[]> {
    await this.#gate.write()
    return this.#records.insertMany(entries, options)
  }

  async commit(change: Change, options?: CallOptions): Promise<CommitResult> {
    await this.#gate.write()
    return this.#records.commit(change, options)
  }

  close(): Promise<void> {
    return this.#records.close()
  }

  async #getManyAfter(
    wait: Promise<void>,
    keys: readonly Uint8Array[],
    options?: CallOptions,
  ): Promise<readonly (Uint8Array | undefined)[]> {
    await wait
    return this.#records.getMany(keys, options)
  }
}

class GatedBlobs implements BlobStore {
  readonly readBytesPreferred: number
  readonly isPersistent: boolean | undefined
  readonly place: string | undefined
  readonly #blobs: BlobStore
  readonly #gate: Gate

  constructor(blobs: BlobStore, gate: Gate) {
    this.readBytesPreferred = blobs.readBytesPreferred
    this.isPersistent = blobs.isPersistent
    this.place = blobs.place
    this.#blobs = blobs
    this.#gate = gate
  }

  async ready(): Promise<void> {
    await this.#blobs.ready?.()
  }

  async put(
    name: string,
    content: AsyncIterable<Uint8Array>,
    options?: PutOptions,
  ): Promise<{ readonly sizeBytes: number }> {
    try {
      await this.#gate.write()
    } catch (error) {
      // The content belongs to this call, which must not leave it open.
      await content[Symbol.asyncIterator]().return?.()
      throw error
    }
    return this.#blobs.put(name, content, options)
  }

  read(name: string, start: number, end: number, options?: CallOptions): Promise<Uint8Array> {
    return this.#blobs.read(name, start, end, options)
  }

  async remove(names: readonly string[]): Promise<void> {
    await this.#gate.write()
    return this.#blobs.remove(names)
  }

  list(prefix: string, options?: CallOptions): AsyncIterable<readonly BlobInfo[]> {
    return this.#blobs.list(prefix, options)
  }

  close(): Promise<void> {
    return this.#blobs.close()
  }
}
