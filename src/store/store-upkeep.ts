import { BackgroundLoop } from '../async/background-loop.ts'
import type { Environment } from '../environment.ts'
import type { BlobStore, RecordStore } from '../storage/backend.ts'
import type { PackCompactor } from './compact/compactor.ts'
import type { Committer } from './ingest/committer.ts'
import type { PlanCache } from './plan/plan-cache.ts'
import { BlobSweep } from './upkeep/blob-sweep.ts'
import { markLeftIds } from './upkeep/removal.ts'
import type { EpochCounter } from './upkeep/epochs.ts'
import type { Lease } from './upkeep/lease.ts'
import { PendingWatch } from './upkeep/pending-watch.ts'

/** How often a server looks whether an epoch has lasted long enough. */
const EPOCH_LOOK_INTERVAL_MS = 60_000
/** How often packs are looked for that wait to be applied, and the lease of the janitor is renewed. */
const PENDING_LOOK_INTERVAL_MS = 30_000

export interface StoreUpkeepParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
  readonly epochs: EpochCounter
  readonly committer: Committer
  readonly compactor: PackCompactor
  readonly plans: PlanCache
  /** Of the server that bounds the plans, among other work that one of all servers does. */
  readonly janitor: Lease
  readonly closing: AbortSignal
  /** Sweeps what is left of removed projects, beside everything else. */
  readonly sweepRemoved: () => void
  readonly onError: (error: unknown) => void
}

/** What a store does again and again, beside any request. */
export class StoreUpkeep {
  readonly #parts: StoreUpkeepParts
  readonly #epochLoop: BackgroundLoop
  readonly #watchLoop: BackgroundLoop
  readonly #watch: PendingWatch
  readonly #sweep: BlobSweep
  #hasSwept = false

  constructor(parts: StoreUpkeepParts) {
    const { environment } = parts
    this.#parts = parts
    this.#epochLoop = new BackgroundLoop(() => this.#lookAtEpoch(), EPOCH_LOOK_INTERVAL_MS, environment)
    this.#watchLoop = new BackgroundLoop(() => this.#lookAtOthers(), PENDING_LOOK_INTERVAL_MS, environment)
    this.#watch = new PendingWatch(parts)
    this.#sweep = new BlobSweep({ ...parts, dropRetired: (...due) => parts.compactor.dropRetired(...due) })
  }

  start(): void {
    this.#epochLoop.later()
    this.#watchLoop.later()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#epochLoop.stop(), this.#watchLoop.stop()])
  }

  /** Removes the blobs whose time has come. */
  removeCondemned(): Promise<void> {
    return this.#sweep.removeCondemned(this.#parts.closing)
  }

  /**
   * Advances the store's own time, and ends merges that were cut off. The server that advances the time also sweeps. So
   * does a server's first look. Its start does not: the sweep lists the whole storage, and would delay first requests.
   */
  async #lookAtEpoch(): Promise<void> {
    const { epochs, compactor, closing, sweepRemoved, onError } = this.#parts
    const isAdvanced = await epochs.advanceWhenDue().catch(onError)
    await compactor.finishOpenMerges(onError, closing).catch(onError)
    // A removal whose answer was lost, or whose server died, has left this to others.
    if (isAdvanced === true) sweepRemoved()
    if (isAdvanced === true || !this.#hasSwept) await this.#sweepBlobs().catch(onError)
  }

  async #sweepBlobs(): Promise<void> {
    const { records, closing } = this.#parts
    this.#hasSwept = true
    await this.removeCondemned()
    if (await this.#sweep.condemnUnnamed(closing)) await markLeftIds(records, closing)
  }

  /** Applies what servers that are gone have committed; one server bounds the plans of all. */
  async #lookAtOthers(): Promise<void> {
    const { janitor, plans, closing, onError } = this.#parts
    await janitor.look().catch(onError)
    await this.#watch.look(onError, closing).catch(onError)
    await plans.makeRoom().catch(onError)
  }
}
