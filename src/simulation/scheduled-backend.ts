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
import { asGuarded } from '../storage/guard.ts'
import { blobCall, Calls, type ConnectionParts, recordCall } from './calls.ts'
import { EPOCH_MS } from './process.ts'

/** Opens the storage of a run. It is empty when it is opened first; later it holds what was written before. */
export type OpenBackend = () => StorageBackend

/**
 * Somebody's own storage in a simulated run: one backend, which all processes share while any of them lives. It is
 * closed when the last of them ends, and opened again by the next.
 */
export class SharedBackend {
  readonly #openBackend: OpenBackend
  readonly #putAtMs = new Map<string, number>()
  #backend: StorageBackend | undefined
  #users = 0
  #calls = 0
  #idle: (() => void) | undefined
  #closed: Promise<void> = Promise.resolve()

  constructor(openBackend: OpenBackend) {
    this.#openBackend = openBackend
  }

  /** Somebody begins to use it. */
  enter(): void {
    this.#users++
  }

  /** Somebody ends to use it. If nobody else does, it is closed; the next call waits for that. */
  leave(): void {
    if (--this.#users === 0) this.#closed = this.#close()
  }

  /** Resolves when it is closed, if nobody uses it. */
  closed(): Promise<void> {
    return this.#closed
  }

  /** Makes one call. */
  async call<T>(make: (backend: StorageBackend) => Promise<T>): Promise<T> {
    await this.#closed
    this.#backend ??= asGuarded(this.#openBackend())
    this.#calls++
    try {
      return await make(this.#backend)
    } finally {
      if (--this.#calls === 0) this.#idle?.()
    }
  }

  /** Notes when a blob was put, in virtual time: real times mean nothing to a run. */
  wasPut(name: string, atMs: number): void {
    this.#putAtMs.set(name, EPOCH_MS + Math.floor(atMs))
  }

  /** The information about blobs, with virtual times. */
  timed(blobs: readonly BlobInfo[]): BlobInfo[] {
    return blobs.map((blob) => ({ ...blob, modifiedAtMs: this.#putAtMs.get(blob.name) ?? EPOCH_MS }))
  }

  async #close(): Promise<void> {
    if (this.#calls > 0) await new Promise<void>((resolve) => (this.#idle = resolve))
    const backend = this.#backend
    this.#backend = undefined
    await backend?.close?.()
  }
}

/**
 * One process's connection to somebody's own storage. The scheduler decides when each call is made and when it is
 * answered, and faults decide whether it is. Calls overlap as those of a real server do.
 */
export class ScheduledBackend implements StorageBackend {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly #calls: Calls

  constructor(parts: ConnectionParts, shared: SharedBackend) {
    this.#calls = new Calls(parts)
    this.records = new ScheduledRecords(this.#calls, shared)
    this.blobs = new ScheduledBlobs(this.#calls, shared, parts.scheduler)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  sever(): void {
    this.#calls.sever()
  }
}

type Make<T> = (backend: StorageBackend) => Promise<T>

/** The results of an iteration, each one a call. Ends the iteration where the caller stops before its end. */
async function* eachOf<T>(
  calls: Calls,
  shared: SharedBackend,
  label: string,
  options: CallOptions,
  iterate: (backend: StorageBackend) => AsyncIterable<T>,
): AsyncGenerator<T> {
  let iterator: AsyncIterator<T> | undefined
  const next = (backend: StorageBackend): Promise<IteratorResult<T>> =>
    (iterator ??= iterate(backend)[Symbol.asyncIterator]()).next()
  try {
    for (;;) {
      const result = await calls.answerOf(label, options, () => shared.call(next))
      if (result.done === true) return
      yield result.value
    }
  } finally {
    const begun = iterator
    if (begun !== undefined) await shared.call(async () => void (await begun.return?.()))
  }
}

class ScheduledRecords implements RecordStore {
  /** The least that every storage has, so that each of them sees the commits that it must bear. */
  readonly limits: RecordLimits = CORE_RECORD_LIMITS
  readonly #calls: Calls
  readonly #shared: SharedBackend

  constructor(calls: Calls, shared: SharedBackend) {
    this.#calls = calls
    this.#shared = shared
  }

  getMany(keys: readonly Uint8Array[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#answerOf(recordCall('getMany', keys[0]), options, ({ records }) => records.getMany(keys))
  }

  range(bounds: RangeBounds, options: CallOptions = {}): AsyncIterable<readonly Entry[]> {
    return eachOf(this.#calls, this.#shared, recordCall('range', bounds.gte), options, ({ records }) =>
      records.range(bounds),
    )
  }

  insertMany(entries: readonly Entry[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    const copies = entries.map(copyOf)
    return this.#answerOf(recordCall('insertMany', entries[0]?.key), { ...options, isWrite: true }, ({ records }) =>
      records.insertMany(copies),
    )
  }

  commit({ put = [], remove = [], expect = [] }: Change, options: CallOptions = {}): Promise<CommitResult> {
    const change = { put: put.map(copyOf), remove, expect }
    return this.#answerOf(
      recordCall('commit', put[0]?.key ?? remove?.[0]),
      { ...options, isWrite: true },
      ({ records }) => records.commit(change),
    )
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #answerOf<T>(label: string, options: CallOptions & { readonly isWrite?: boolean }, make: Make<T>): Promise<T> {
    return this.#calls.answerOf(label, options, () => this.#shared.call(make))
  }
}

class ScheduledBlobs implements BlobStore {
  readonly readBytesPreferred = 1_048_576
  readonly #calls: Calls
  readonly #shared: SharedBackend
  readonly #scheduler: ConnectionParts['scheduler']

  constructor(calls: Calls, shared: SharedBackend, scheduler: ConnectionParts['scheduler']) {
    this.#calls = calls
    this.#shared = shared
    this.#scheduler = scheduler
  }

  async put(
    name: string,
    content: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<{ sizeBytes: number }> {
    // The content comes in virtual time, which stands still while the storage works.
    const chunks: Uint8Array[] = []
    for await (const chunk of content) {
      chunks.push(Uint8Array.from(chunk))
      await this.#answerOf(blobCall('put chunk', name), { signal: options.signal }, () => Promise.resolve())
    }
    return this.#answerOf(
      blobCall('put publishes', name),
      { signal: options.signal, isWrite: true },
      async ({ blobs }) => {
        const put = await blobs.put(name, eachIn(chunks))
        this.#shared.wasPut(name, this.#scheduler.nowMs)
        return put
      },
    )
  }

  read(name: string, start: number, end: number, options: CallOptions = {}): Promise<Uint8Array> {
    return this.#answerOf(blobCall('read', name), options, ({ blobs }) => blobs.read(name, start, end))
  }

  remove(names: readonly string[]): Promise<void> {
    return this.#answerOf('remove', { isWrite: true }, ({ blobs }) => blobs.remove(names))
  }

  async *list(prefix: string, options: CallOptions = {}): AsyncGenerator<readonly BlobInfo[]> {
    const all = eachOf(this.#calls, this.#shared, 'list', options, ({ blobs }) => blobs.list(prefix))
    for await (const some of all) yield this.#shared.timed(some)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #answerOf<T>(label: string, options: CallOptions & { readonly isWrite?: boolean }, make: Make<T>): Promise<T> {
    return this.#calls.answerOf(label, options, () => this.#shared.call(make))
  }
}

/** The caller may change its buffers once a call that it gave up has returned. */
function copyOf({ key, value }: Entry): Entry {
  return { key: Uint8Array.from(key), value: Uint8Array.from(value) }
}

async function* eachIn(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield chunk
}
