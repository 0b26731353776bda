import { KeyedMutex } from '../async/keyed-mutex.ts'
import { setMaxListeners } from 'node:events'
import { randomId, REAL_ENVIRONMENT, type Clock, type Environment } from '../environment.ts'
import { DeflatePool } from '../compression/deflate-pool.ts'
import { divideMemory, type ServiceMemory } from '../memory/service-memory.ts'
import type { ObjectBatch } from '../object/batch.ts'
import type {
  ClosureOptions,
  GraphStore,
  MemoryInUse,
  PutOptions,
  PutResult,
  SignalOptions,
  TextOptions,
} from '../object/graph-store.ts'
import type { IdSet } from '../object/id-set.ts'
import type { Selection } from '../object/selection.ts'
import type { StorageBackend } from '../storage/backend.ts'
import { Committer } from './ingest/committer.ts'
import type { CommittedPack } from './records/committed-pack.ts'
import { PackCollector } from './collect/collector.ts'
import type { PackCompactor } from './compact/compactor.ts'
import { openCompactor } from './compact/open.ts'
import { GraphReader } from './graph-reader.ts'
import { Ingest } from './ingest/ingest.ts'
import { PackObjectPager } from './object-pager.ts'
import { type QuotaOf, Quotas } from './ingest/quotas.ts'
import { PackCatalog } from './records/pack-catalog.ts'
import { PinRecords } from './records/pins.ts'
import { AllTotals } from './usage/all-totals.ts'
import { UsageCache } from './usage/usage-cache.ts'
import { PlanPrefetch } from './plan/plan-prefetch.ts'
import { DeltaCache } from './delta/delta-cache.ts'
import { PlanCache } from './plan/plan-cache.ts'
import { listProjects, viewProject } from './records/projects.ts'
import { checkStorageFormat } from './records/storage-format.ts'
import { EpochCounter } from './upkeep/epochs.ts'
import { Lease } from './upkeep/lease.ts'
import { applyPack, applyPending } from './upkeep/recovery.ts'
import { removeProject, sweepGarbage } from './upkeep/removal.ts'
import { SegmentReader } from './pack/segment-reader.ts'
import { StoreUpkeep } from './store-upkeep.ts'
import { UnappliedPacks } from './ingest/unapplied-packs.ts'

export type { QuotaOf } from './ingest/quotas.ts'

const MB = 1_048_576
/**
 * Level 2 takes two thirds of the time of level 4. Its blocks are larger by 1 in 200 for raw geometry, by 1 in 20 for a
 * building, until a merge compresses them at level 6.
 */
const BLOCK_COMPRESSION_LEVEL = 2
/** A block of the usual 16 KB refers back no further, and is as small as with a window of 32 KB. */
const BLOCK_WINDOW_BITS = 14
/**
 * The main thread parses for 5 ms at a time, and hands on what is to be compressed in between. With fewer blocks, the
 * thread pool is idle for a part of that time; with more, uploads are no faster.
 */
const BLOCKS_IN_RESERVE = 14

export interface PackStoreOptions {
  /** Guarded: its errors are classified. */
  readonly backend: StorageBackend
  /** Memory for tables, plans and requests in flight. 96 MB by default. */
  readonly memory?: ServiceMemory
  /** Plans in storage. Default: 1 GB. */
  readonly planBytesMax?: number
  /** The time of day; that of the environment by default. */
  readonly quotaOf?: QuotaOf | undefined
  readonly clock?: Clock
  /** Time, randomness and compression. Those of the process by default. */
  readonly environment?: Environment
  /** 32 hex digits, never the same twice. Default: 128 random bits. */
  readonly newId?: () => string
  /** Receives failures beside any request: a plan that could not be made, a sweep that was cut off. */
  readonly onBackgroundError?: (error: unknown) => void
}

/** The object graph in packs over a backend. Opens in `ready`. */
export class PackStore implements GraphStore {
  readonly pager: PackObjectPager
  readonly #backend: StorageBackend
  readonly #options: PackStoreOptions
  readonly #closing = new AbortController()
  readonly #clock: Clock
  readonly #deflate: DeflatePool
  readonly #committer: Committer
  readonly #catalog: PackCatalog
  readonly #plans: PlanCache
  readonly #deltas: DeltaCache
  readonly #reader: GraphReader
  readonly #ingest: Ingest
  readonly #unapplied: UnappliedPacks
  readonly #memory: ServiceMemory
  readonly #environment: Environment
  readonly #prefetch: PlanPrefetch
  readonly epochs: EpochCounter
  readonly pins: PinRecords
  readonly usages: UsageCache
  readonly totals: AllTotals
  readonly collector: PackCollector
  readonly compactor: PackCompactor
  readonly janitor: Lease
  readonly #upkeep: StoreUpkeep
  #background: Promise<void> = Promise.resolve()
  #opening: Promise<void> | undefined

  constructor(options: PackStoreOptions) {
    const { backend } = options
    const { records, blobs } = backend
    const environment = options.environment ?? REAL_ENVIRONMENT
    const memory = options.memory ?? divideMemory(undefined, { environment })
    const newId = options.newId ?? ((): string => randomId(environment))
    this.#clock = options.clock ?? environment
    this.#deflate = new DeflatePool({
      level: BLOCK_COMPRESSION_LEVEL,
      windowBits: BLOCK_WINDOW_BITS,
      concurrency: environment.parallelism + BLOCKS_IN_RESERVE,
      environment,
    })
    this.#prefetch = new PlanPrefetch((...root) => this.#prefetchPlan(...root), environment)
    this.#memory = memory
    this.#environment = environment
    const segments = new SegmentReader(blobs, memory.answers, environment)
    const onBackgroundError = (error: unknown): void => this.#reportUnlessClosing(error)
    this.epochs = new EpochCounter(records, environment)
    this.janitor = new Lease(records, 'janitor', environment)
    this.#options = options
    this.#backend = backend
    const turns = new KeyedMutex()
    this.#committer = new Committer({ records, blobs, environment, turns })
    this.#unapplied = new UnappliedPacks((pack) =>
      applyPack({ records, blobs, environment, committer: this.#committer }, pack),
    )
    this.#catalog = new PackCatalog(
      { records, blobs, environment, bufferPool: memory.answers.bufferPool },
      memory.tablesBytes,
    )
    const storedBytesMax = options.planBytesMax ?? 1_024 * MB
    const planParts = {
      records,
      blobs,
      catalog: this.#catalog,
      reader: segments,
      deflate: this.#deflate,
      newId,
      environment,
      turns,
      budget: memory.requests,
      recentEpoch: () => this.epochs.recent(),
      janitor: this.janitor,
      onError: onBackgroundError,
    }
    this.#plans = new PlanCache({ ...planParts, cacheBytes: memory.plansBytes, storedBytesMax })
    const closing = this.#closing.signal
    // All background work listens to it.
    setMaxListeners(0, closing)
    this.#deltas = new DeltaCache(memory.deltasBytes, this.#deflate)
    const made = { plans: this.#plans, deltas: this.#deltas }
    this.#reader = new GraphReader({ ...planParts, ...made, closing, onPlanFailed: onBackgroundError })
    const closureOf = this.#reader.closureOf.bind(this.#reader)
    this.compactor = openCompactor({ ...planParts, epochs: this.epochs, clock: this.#clock, graphs: this.#reader })
    const finishMerge = this.compactor.finishOpenMerge.bind(this.compactor)
    this.collector = new PackCollector({ ...planParts, epochs: this.epochs, finishMerge, closureOf, closing })
    const revive = this.collector.revive.bind(this.collector)
    this.pins = new PinRecords({ records, clock: this.#clock, newId, revive, closing, environment, turns })
    const walkedClosureOf = this.#reader.walkedClosureOf.bind(this.#reader)
    const closures = { closureOf, walkedClosureOf }
    this.usages = new UsageCache({ records, blobs, environment, budget: memory.requests, ...closures, closing })
    this.totals = new AllTotals({ records, environment, closing })
    const recentEpoch = (): Promise<number> => this.epochs.recent()
    this.pager = new PackObjectPager({ records, catalog: this.#catalog, reader: segments, environment, recentEpoch })
    this.#ingest = this.#ingestOf(newId)
    this.#upkeep = this.#upkeepOf()
  }

  /**
   * Opens the backend and applies packs that a crash left committed. Rejects with the cause; may be called again, and
   * then gives the same result.
   */
  ready(): Promise<void> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  async put(projectId: string, batches: AsyncIterable<ObjectBatch>, options: PutOptions): Promise<PutResult> {
    this.#prefetch.uploadBegan(projectId)
    try {
      const result = await this.#ingest.put(projectId, batches, options)
      if (this.#unapplied.size > 0) this.#applyLater()
      return result
    } finally {
      this.#prefetch.uploadEnded(projectId)
    }
  }

  has(projectId: string, ids: IdSet, options: SignalOptions): Promise<Uint8Array> {
    return this.#reader.has(projectId, ids, options)
  }

  select(projectId: string, ids: IdSet, options: SignalOptions): Promise<Selection> {
    return this.#reader.select(projectId, ids, options)
  }

  text(projectId: string, id: Uint8Array, options: TextOptions): Promise<Uint8Array | undefined> {
    return this.#reader.text(projectId, id, options)
  }

  closure(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined> {
    return this.#reader.closure(projectId, rootId, options)
  }

  projects(): AsyncIterable<readonly string[]> {
    return listProjects(this.#backend.records)
  }

  async holds(projectId: string): Promise<boolean> {
    return (await viewProject(this.#backend.records, projectId)) !== undefined
  }

  async remove(projectId: string): Promise<void> {
    await removeProject(this.#removalParts(), projectId)
    this.#inBackground(() => sweepGarbage(this.#removalParts(), this.#closing.signal))
  }

  /** Waits until no background work is running: no plan is being made, no sweep is under way. */
  async idle(): Promise<void> {
    for (let seen; seen !== this.#background;) {
      seen = this.#background
      await seen
      await this.#plans.settled()
    }
  }

  memory(): { readonly requests: MemoryInUse; readonly answers: MemoryInUse } {
    return { requests: this.#memory.requests, answers: this.#memory.answers }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('the store is closing'))
    this.#prefetch.close()
    await this.#upkeep.stop()
    await this.#opening?.catch(() => undefined)
    await this.#background
    await Promise.all([this.usages.settled(), this.totals.settled()])
    await this.#plans.settled()
    await this.janitor.release().catch(() => undefined)
    this.#deflate.close()
    this.#catalog.clear()
    this.#plans.clear()
    this.#deltas.clear()
    await this.#backend.close()
  }

  async #open(): Promise<void> {
    await this.#backend.ready?.()
    const { records, blobs } = this.#backend
    await checkStorageFormat(records)
    await this.epochs.current()
    const parts = { records, blobs, environment: this.#environment, committer: this.#committer }
    await applyPending(parts, (error) => this.#reportUnlessClosing(error))
    const { signal } = this.#closing
    await this.janitor.look().catch((error: unknown) => this.#reportUnlessClosing(error))
    this.#inBackground(() => sweepGarbage(this.#removalParts(), signal))
    this.#inBackground(() => this.compactor.finishOpenMerges((error) => this.#reportUnlessClosing(error), signal))
    this.#upkeep.start()
    this.#inBackground(() => this.#upkeep.removeCondemned())
  }

  #upkeepOf(): StoreUpkeep {
    const closing = this.#closing.signal
    return new StoreUpkeep({
      records: this.#backend.records,
      blobs: this.#backend.blobs,
      environment: this.#environment,
      epochs: this.epochs,
      committer: this.#committer,
      compactor: this.compactor,
      plans: this.#plans,
      janitor: this.janitor,
      closing,
      sweepRemoved: () => this.#inBackground(() => sweepGarbage(this.#removalParts(), closing)),
      onError: (error) => this.#reportUnlessClosing(error),
    })
  }

  #ingestOf(newId: () => string): Ingest {
    const { backend, quotaOf } = this.#options
    return new Ingest({
      records: backend.records,
      blobs: backend.blobs,
      committer: this.#committer,
      quotas: quotaOf === undefined ? undefined : new Quotas(quotaOf),
      deflate: this.#deflate,
      budget: this.#memory.requests,
      newId,
      nowMs: () => this.#clock.now(),
      recentEpoch: () => this.epochs.recent(),
      environment: this.#environment,
      onRoot: (projectId, rootId) => this.#prefetch.rootSeen(projectId, rootId),
      onUnapplied: (pack) => this.#applyLater(pack),
    })
  }

  #removalParts(): Parameters<typeof removeProject>[0] {
    const { records, blobs } = this.#backend
    return { records, blobs, nowMs: () => this.#clock.now(), environment: this.#environment }
  }

  /** Retries the work that the storage could not do a moment ago: now, and after the next successful upload. */
  #applyLater(pack?: CommittedPack): void {
    if (pack !== undefined) this.#unapplied.add(pack)
    this.#inBackground(() => this.#unapplied.applyAll())
    this.#inBackground(() => sweepGarbage(this.#removalParts(), this.#closing.signal))
  }

  #prefetchPlan(projectId: string, rootId: string, attempt: number): void {
    this.#inBackground(async () => {
      const isComplete = await this.#reader.planAhead(projectId, rootId)
      if (!isComplete) this.#prefetch.stillIncomplete(projectId, rootId, attempt)
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
