import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { availableParallelism } from 'node:os'
import { AnswerMemory } from '../answer-memory.ts'
import type { Clock } from '../clock.ts'
import { DeflatePool } from '../compression/deflate-pool.ts'
import { MemoryBudget } from '../memory-budget.ts'
import type { ObjectBatch } from '../object/batch.ts'
import type { ClosureOptions, GraphStore, MemoryInUse, PutResult, SignalOptions } from '../object/graph-store.ts'
import type { IdSet } from '../object/id-set.ts'
import type { Selection } from '../object/selection.ts'
import type { StorageBackend } from '../storage/backend.ts'
import { classifiedBackend } from '../storage/classified.ts'
import { type CommittedPack, Committer } from './committer.ts'
import { GraphReader } from './graph-reader.ts'
import { Ingest } from './ingest.ts'
import { PackCatalog } from './pack/pack-catalog.ts'
import { PlanAhead } from './plan/plan-ahead.ts'
import { PlanShelf } from './plan/plan-shelf.ts'
import { listProjects } from './records/projects.ts'
import { applyPack, applyPending, sweepOrphans } from './upkeep/recovery.ts'
import { removeProject, sweepGarbage } from './upkeep/removal.ts'
import { SegmentReader } from './pack/segment-reader.ts'
import { UnappliedPacks } from './unapplied.ts'

const MB = 1_048_576
/** Level 4 is within 6 in 100 of level 6 in size, and half as much work again faster. */
const BLOCK_COMPRESSION_LEVEL = 4

export interface PackStoreOptions {
  readonly backend: StorageBackend
  /** Memory for tables, plans and uploads in flight. Default: 96 MB. */
  readonly memoryBytesMax?: number
  /** Plans in storage. Default: 1 GB. */
  readonly planBytesMax?: number
  /** How long an upload waits for memory before it is refused. Default: 10 s. */
  readonly uploadWaitMs?: number
  readonly clock?: Clock
  /** 32 hex digits, never the same twice. Default: 128 random bits. */
  readonly newId?: () => string
  /** Told what failed beside any request: a plan that could not be made, a sweep that was cut off. */
  readonly onBackgroundError?: (error: unknown) => void
}

/** The object graph in packs over a backend. Opens in `ready`. */
export class PackStore implements GraphStore {
  readonly #backend: StorageBackend
  readonly #options: PackStoreOptions
  readonly #closing = new AbortController()
  readonly #deflate = new DeflatePool({ level: BLOCK_COMPRESSION_LEVEL, concurrency: availableParallelism() })
  readonly #committer: Committer
  readonly #catalog: PackCatalog
  readonly #plans: PlanShelf
  readonly #reader: GraphReader
  readonly #ingest: Ingest
  readonly #unapplied: UnappliedPacks
  readonly #answers: AnswerMemory
  readonly #uploads: MemoryBudget
  readonly #ahead = new PlanAhead((projectId, rootId, attempt) => this.#planAhead(projectId, rootId, attempt))
  #background: Promise<void> = Promise.resolve()
  #opening: Promise<void> | undefined

  constructor(options: PackStoreOptions) {
    const backend = classifiedBackend(options.backend)
    const { records, blobs } = backend
    const memoryBytesMax = options.memoryBytesMax ?? 96 * MB
    const newId = options.newId ?? ((): string => randomBytes(16).toString('hex'))
    const share = Math.floor(memoryBytesMax / 8)
    this.#answers = new AnswerMemory(share)
    const segments = new SegmentReader(blobs, this.#answers)
    const onBackgroundError = (error: unknown): void => this.#reportUnlessClosing(error)
    this.#options = options
    this.#backend = backend
    this.#committer = new Committer(records)
    this.#unapplied = new UnappliedPacks((pack) => applyPack({ records, blobs, committer: this.#committer }, pack))
    this.#catalog = new PackCatalog(records, blobs, share * 2)
    const storedBytesMax = options.planBytesMax ?? 1_024 * MB
    const planParts = {
      records,
      blobs,
      catalog: this.#catalog,
      reader: segments,
      deflate: this.#deflate,
      newId,
      onError: onBackgroundError,
    }
    this.#plans = new PlanShelf({ ...planParts, cacheBytes: share, storedBytesMax })
    const closing = this.#closing.signal
    // Everything that goes on beside requests listens to it.
    setMaxListeners(0, closing)
    this.#reader = new GraphReader({
      records,
      catalog: this.#catalog,
      reader: segments,
      plans: this.#plans,
      closing,
      onPlanFailed: onBackgroundError,
    })
    this.#uploads = new MemoryBudget(memoryBytesMax - share * 3)
    this.#ingest = new Ingest({
      records,
      blobs,
      committer: this.#committer,
      deflate: this.#deflate,
      budget: this.#uploads,
      newId,
      nowMs: () => (options.clock ?? Date).now(),
      uploadWaitMs: options.uploadWaitMs ?? 10_000,
      onRoot: (projectId, rootId) => this.#ahead.rootSeen(projectId, rootId),
      onUnapplied: (pack) => this.#applyLater(pack),
    })
  }

  /** Opens the backend and applies what a crash left committed. Rejects with the cause; may be called again, and then answers the same. */
  ready(): Promise<void> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  async put(projectId: string, batches: AsyncIterable<ObjectBatch>, options: SignalOptions): Promise<PutResult> {
    this.#ahead.uploadBegan(projectId)
    try {
      const result = await this.#ingest.put(projectId, batches, options)
      if (this.#unapplied.size > 0) this.#applyLater()
      return result
    } finally {
      this.#ahead.uploadEnded(projectId)
    }
  }

  has(projectId: string, ids: IdSet, options: SignalOptions): Promise<Uint8Array> {
    return this.#reader.has(projectId, ids, options)
  }

  select(projectId: string, ids: IdSet, options: SignalOptions): Promise<Selection> {
    return this.#reader.select(projectId, ids, options)
  }

  closure(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined> {
    return this.#reader.closure(projectId, rootId, options)
  }

  projects(): AsyncIterable<readonly string[]> {
    return listProjects(this.#backend.records)
  }

  async remove(projectId: string): Promise<void> {
    await removeProject(this.#removalParts(), projectId)
    this.#inBackground(() => sweepGarbage(this.#removalParts(), this.#closing.signal))
  }

  /** Waits until nothing goes on beside requests: no plan is being made, no sweep is under way. */
  async idle(): Promise<void> {
    for (let seen; seen !== this.#background;) {
      seen = this.#background
      await seen
      await this.#plans.settled()
    }
  }

  memory(): { readonly uploads: MemoryInUse; readonly answers: MemoryInUse } {
    return { uploads: this.#uploads, answers: this.#answers }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the store is closing'))
    this.#ahead.close()
    await this.#opening?.catch(() => undefined)
    await this.#background
    await this.#plans.settled()
    this.#deflate.close()
    this.#catalog.clear()
    this.#plans.clear()
    await this.#backend.close()
  }

  async #open(): Promise<void> {
    await this.#options.backend.ready?.()
    const { records, blobs } = this.#backend
    const parts = { records, blobs, committer: this.#committer }
    await applyPending(parts, (error) => this.#reportUnlessClosing(error))
    const { signal } = this.#closing
    this.#inBackground(() => sweepGarbage(this.#removalParts(), signal))
    this.#inBackground(() => sweepOrphans(parts, (this.#options.clock ?? Date).now(), signal))
  }

  #removalParts(): Parameters<typeof removeProject>[0] {
    return {
      records: this.#backend.records,
      blobs: this.#backend.blobs,
      nowMs: () => (this.#options.clock ?? Date).now(),
    }
  }

  /** What the storage could not do a moment ago it is asked for again: now, and after the next upload that goes through. */
  #applyLater(pack?: CommittedPack): void {
    if (pack !== undefined) this.#unapplied.add(pack)
    this.#inBackground(() => this.#unapplied.applyAll())
    this.#inBackground(() => sweepGarbage(this.#removalParts(), this.#closing.signal))
  }

  #planAhead(projectId: string, rootId: string, attempt: number): void {
    this.#inBackground(async () => {
      const isComplete = await this.#reader.planAhead(projectId, rootId)
      if (!isComplete) this.#ahead.stillIncomplete(projectId, rootId, attempt)
    })
  }

  #inBackground(task: () => Promise<void>): void {
    this.#background = this.#background.then(async () => {
      if (this.#closing.signal.aborted) return
      await task().catch((error: unknown) => this.#reportUnlessClosing(error))
    })
  }

  #reportUnlessClosing(error: unknown): void {
    if (!this.#closing.signal.aborted) this.#options.onBackgroundError?.(error)
  }
}

export function createPackStore(options: PackStoreOptions): PackStore {
  return new PackStore(options)
}
