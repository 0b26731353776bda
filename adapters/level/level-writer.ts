import { isTooManyFiles, withErrno } from '../common/errno.ts'
import type { WriteGuard } from '../common/write-guard.ts'
import { AbsentKeys, textOf } from './absent-keys.ts'
import type { LevelDatabase, OpenDatabase } from './database.ts'
import type { RecordedLengths } from './recorded-lengths.ts'
import type { SortedReader } from './sorted-reader.ts'
import type { Semaphore } from '../../src/async/semaphore.ts'

/** Syncs at once of one backend: each holds a thread of the pool, which has four, and reads want some of them too. */
export const SYNCS_MAX = 2

/**
 * A group accepts jobs until it has this many keys or bytes: larger batches hold the main thread. One job may exceed
 * them.
 */
const GROUP_KEYS_MAX = 1_000
const GROUP_BYTES_MAX = 4 * 1_048_576

/** The view of a job: the database as the jobs before it leave it, and the job's changes. */
export interface WriteView {
  /**
   * Only keys that the job named in `reads` and keys that were written in the same group. The bytes belong to the view:
   * copy them to keep them.
   */
  get(key: Uint8Array): Uint8Array | undefined
  put(key: Uint8Array, value: Uint8Array): void
  /** Puts the value if there is none; otherwise it returns the one that is there, as `get` does. */
  insert(key: Uint8Array, value: Uint8Array): Uint8Array | undefined
  remove(key: Uint8Array): void
}

export interface WriteJob<R> {
  readonly reads: readonly Uint8Array[]
  /** Bytes that it will write, about. */
  readonly bytes: number
  /** Decides and writes. An error rejects this job alone, and must come before its first write. */
  apply(view: WriteView): R
}

interface QueuedJob {
  readonly job: WriteJob<unknown>
  readonly signal: AbortSignal | undefined
  result: unknown
  readonly settle: (failure?: { readonly error: unknown }) => void
}

/**
 * The one writer of a LevelDB: takes all queued jobs, reads the keys they need at once, lets them decide one after the
 * other, and writes one synced batch. So jobs are serializable, and concurrent ones share a sync.
 */
export class LevelWriter {
  /** Keys that need not be read. */
  readonly absent: AbsentKeys = new AbsentKeys()
  readonly #database: LevelDatabase
  readonly #reader: SortedReader
  readonly #lengths: RecordedLengths
  readonly #guard: WriteGuard
  readonly #syncs: Semaphore
  readonly #sync: boolean
  readonly #queue: QueuedJob[] = []
  #running = false

  constructor(
    { database, reader, lengths }: OpenDatabase,
    options: { readonly guard: WriteGuard; readonly syncs: Semaphore; readonly sync: boolean },
  ) {
    this.#database = database
    this.#reader = reader
    this.#lengths = lengths
    this.#guard = options.guard
    this.#syncs = options.syncs
    this.#sync = options.sync
  }

  /**
   * Resolves when the job's writes are durable. An abort takes effect while the job waits; after that the job runs to
   * its end.
   */
  run<R>(job: WriteJob<R>, signal?: AbortSignal): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      const queued: QueuedJob = {
        job,
        signal,
        result: undefined,
        settle: (failure) => (failure ? reject(failure.error) : resolve(queued.result as R)),
      }
      this.#queue.push(queued)
      if (!this.#running) void this.#drain()
    })
  }

  async #drain(): Promise<void> {
    this.#running = true
    // Other jobs of this turn of the event loop belong to the first group.
    await Promise.resolve()
    while (this.#queue.length > 0) await this.#runGroup(this.#takeGroup())
    this.#running = false
  }

  #takeGroup(): QueuedJob[] {
    let [count, keys, bytes] = [0, 0, 0]
    for (const { job } of this.#queue) {
      keys += job.reads.length
      bytes += job.bytes
      if (count > 0 && (keys > GROUP_KEYS_MAX || bytes > GROUP_BYTES_MAX)) break
      count++
    }
    return this.#queue.splice(0, count).filter((queued) => {
      if (queued.signal?.aborted !== true) return true
      queued.settle({ error: queued.signal.reason })
      return false
    })
  }

  async #runGroup(group: readonly QueuedJob[]): Promise<void> {
    let jobs = group
    try {
      this.#guard.check()
      const view = new Overlay(await this.#read(jobs))
      jobs = jobs.filter((queued) => decide(queued, view))
      const operations = view.operations()
      this.absent.beginWrite(new Set(operations.keys()))
      try {
        await this.#write([...operations.values()])
      } finally {
        this.absent.endWrite()
      }
      for (const queued of jobs) queued.settle()
    } catch (error) {
      for (const queued of jobs) queued.settle({ error })
    }
  }

  /** What is there under the keys that the jobs read. */
  async #read(group: readonly QueuedJob[]): Promise<Map<string, Uint8Array | undefined>> {
    const held = new Map<string, Uint8Array | undefined>()
    const unknown = new Map<string, Uint8Array>()
    for (const { job } of group)
      for (const key of job.reads) {
        const text = textOf(key)
        if (!this.absent.has(text)) unknown.set(text, key)
      }
    const asked = [...unknown.values()]
    const values = this.#reader.getNow(asked) ?? (await this.#reader.getMany(asked))
    for (const [at, text] of [...unknown.keys()].entries()) held.set(text, values[at])
    return held
  }

  async #write(operations: readonly Operation[]): Promise<void> {
    if (operations.length === 0) return
    await this.#guard.checkForRecords()
    await this.#syncs.run(undefined, async () => {
      this.#guard.check()
      try {
        await this.#writeBatch(operations)
      } catch (raw) {
        const error = withErrno(raw)
        // LevelDB may have written a part of the batch to its log, and later records would be lost behind it.
        if (!isTooManyFiles(error)) this.#guard.poison(error)
        throw error
      }
    })
  }

  /**
   * A chained batch hands each entry over as it is; a list of operations is cloned and checked entry by entry, ten
   * times slower.
   */
  async #writeBatch(operations: readonly Operation[]): Promise<void> {
    const batch = this.#database.batch()
    for (const operation of operations) {
      if (operation.type === 'put') batch.put(operation.key, operation.value)
      else batch.del(operation.key)
    }
    await batch.write({ sync: this.#sync })
    if (this.#sync) await this.#lengths.advance()
  }
}

type Operation = { type: 'put'; key: Uint8Array; value: Uint8Array } | { type: 'del'; key: Uint8Array }

class Overlay implements WriteView {
  readonly #held: Map<string, Uint8Array | undefined>
  readonly #operations = new Map<string, Operation>()

  constructor(held: Map<string, Uint8Array | undefined>) {
    this.#held = held
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#held.get(textOf(key))
  }

  put(key: Uint8Array, value: Uint8Array): void {
    this.#put(textOf(key), key, value)
  }

  insert(key: Uint8Array, value: Uint8Array): Uint8Array | undefined {
    const text = textOf(key)
    const held = this.#held.get(text)
    if (held === undefined) this.#put(text, key, value)
    return held
  }

  remove(key: Uint8Array): void {
    const text = textOf(key)
    this.#held.set(text, undefined)
    this.#operations.set(text, { type: 'del', key })
  }

  operations(): ReadonlyMap<string, Operation> {
    return this.#operations
  }

  #put(text: string, key: Uint8Array, value: Uint8Array): void {
    this.#held.set(text, value)
    this.#operations.set(text, { type: 'put', key, value })
  }
}

/** Whether the job still waits for the batch: one that throws is settled here. */
function decide(queued: QueuedJob, view: WriteView): boolean {
  try {
    queued.result = queued.job.apply(view)
    return true
  } catch (error) {
    queued.settle({ error })
    return false
  }
}
