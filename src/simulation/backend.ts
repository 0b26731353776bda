import {
  type BlobInfo,
  type BlobStore,
  type CallOptions,
  type Change,
  type CommitResult,
  CORE_RECORD_LIMITS,
  type Entry,
  type PutOptions,
  type RangeBounds,
  type RecordLimits,
  type RecordStore,
  type StorageBackend,
} from '../storage/backend.ts'
import { blobCall, Calls, recordCall, type SimulatedBackendParts } from './calls.ts'

/** Of the first batch, at most; later ones are larger, so that others come between few. */
const RANGE_BATCH_ENTRIES = 8
const BATCH_DOUBLINGS_MAX = 6
const LIST_BATCH_BLOBS = 4

/**
 * One process's connection to a simulated storage: both seams. The scheduler decides when each call takes effect and
 * when it is answered, and faults decide whether it is. Answered calls stay, as the seam promises; of unanswered ones a
 * crash keeps any part.
 */
export class SimulatedBackend implements StorageBackend {
  /** Small records, with conditional commits. */
  readonly records: RecordStore
  /** Large immutable blobs. */
  readonly blobs: BlobStore
  readonly #calls: Calls

  constructor(parts: SimulatedBackendParts) {
    this.#calls = new Calls(parts, parts.storage)
    this.records = new SimulatedRecords(this.#calls, parts)
    this.blobs = new SimulatedBlobs(this.#calls, parts)
  }

  /** As `StorageBackend.close`. */
  close(): Promise<void> {
    return Promise.resolve()
  }

  /**
   * Call it when the process has died: any part of its unfinished writes takes effect, and blobs that it was putting
   * may be torn.
   */
  sever(): void {
    this.#calls.sever()
  }
}

class SimulatedRecords implements RecordStore {
  readonly limits: RecordLimits = CORE_RECORD_LIMITS
  readonly #calls: Calls
  readonly #parts: SimulatedBackendParts

  constructor(calls: Calls, parts: SimulatedBackendParts) {
    this.#calls = calls
    this.#parts = parts
  }

  getMany(keys: readonly Uint8Array[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    const { storage } = this.#parts
    const values: (Uint8Array | undefined)[] = keys.map(() => undefined)
    const make = (at: number): void => void (values[at] = storage.get(keys[at]))
    return this.#calls.call(recordCall('getMany', keys[0]), options, { count: keys.length, make }, () => values)
  }

  async *range(bounds: RangeBounds, options: CallOptions = {}): AsyncGenerator<readonly Entry[]> {
    let [{ gte, lt }, left] = [bounds, bounds.limit ?? Infinity]
    for (let batch = 0; left > 0; batch++) {
      const batchEntries = RANGE_BATCH_ENTRIES * 2 ** Math.min(batch, BATCH_DOUBLINGS_MAX)
      const max = Math.min(left, 1 + this.#parts.random.below(batchEntries))
      let found: readonly Entry[] = []
      const make = (): void => void (found = this.#parts.storage.slice({ ...bounds, gte, lt }, max))
      await this.#calls.call(recordCall('range', bounds.gte), options, { count: 1, make }, () => undefined)
      const last = found.at(-1)
      if (last === undefined) return
      yield found
      left -= found.length
      if (bounds.reverse === true) lt = last.key
      else gte = Buffer.concat([last.key, Uint8Array.of(0)])
    }
  }

  insertMany(entries: readonly Entry[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    const { storage } = this.#parts
    const held: (Uint8Array | undefined)[] = entries.map(() => undefined)
    const effects = { count: entries.length, make: (at: number): void => void (held[at] = storage.insert(entries[at])) }
    const label = recordCall('insertMany', entries[0]?.key)
    return this.#calls.call(label, { ...options, isWrite: true }, effects, () => held)
  }

  commit(change: Change, options: CallOptions = {}): Promise<CommitResult> {
    let result: CommitResult = { ok: true }
    const make = (): void => void (result = this.#parts.storage.commit(change))
    const label = recordCall('commit', change.put?.[0]?.key ?? change.remove?.[0])
    return this.#calls.call(label, { ...options, isWrite: true }, { count: 1, make }, () => result)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

class SimulatedBlobs implements BlobStore {
  readonly readBytesPreferred = 1_048_576
  readonly #calls: Calls
  readonly #parts: SimulatedBackendParts

  constructor(calls: Calls, parts: SimulatedBackendParts) {
    this.#calls = calls
    this.#parts = parts
  }

  async put(
    name: string,
    content: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<{ sizeBytes: number }> {
    const { storage } = this.#parts
    const write = { ...options, isWrite: true }
    const open = this.#calls.putBegan(name)
    try {
      await this.#calls.answerOf(blobCall('put', name), write, () => storage.checkFree(name))
      for await (const chunk of content) {
        open.chunks.push(Uint8Array.from(chunk))
        await this.#calls.answerOf(blobCall('put chunk', name), { signal: options.signal }, () => undefined)
      }
      return await this.#calls.answerOf(blobCall('put publishes', name), write, () =>
        storage.putBlob(name, open.chunks),
      )
    } finally {
      this.#calls.putEnded(open)
    }
  }

  read(name: string, start: number, end: number, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#calls.answerOf(blobCall('read', name), options, () => this.#parts.storage.readBlob(name, start, end))
  }

  remove(names: readonly string[]): Promise<void> {
    const make = (at: number): void => this.#parts.storage.removeBlob(names[at])
    return this.#calls.call('remove', { isWrite: true }, { count: names.length, make }, () => undefined)
  }

  async *list(prefix: string, options: CallOptions = {}): AsyncGenerator<readonly BlobInfo[]> {
    let after: string | undefined
    for (;;) {
      const max = 1 + this.#parts.random.below(LIST_BATCH_BLOBS)
      const found = await this.#calls.answerOf('list', options, () => this.#parts.storage.listBlobs(prefix, after, max))
      if (found.length === 0) return
      yield found
      after = found.at(-1)?.name
    }
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
