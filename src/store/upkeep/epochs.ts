import type { Environment } from '../../environment.ts'
import type { StoreEpoch, StoreEpochs } from '../../object/epochs.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { epochKey } from '../records/keys.ts'
import { asEpoch, encodeEpoch } from '../records/records.ts'

/** How long an epoch lasts at least. */
export const EPOCH_MS = 600_000

/** A commit may carry an epoch that was looked up so long ago. */
const RECENT_MS = 120_000

interface Sighting {
  readonly epoch: number
  readonly atMs: number
}

/**
 * The store's own time, for periods of grace. A server that has seen the same epoch for `EPOCH_MS` of its own clock
 * advances it by one, in a commit that expects that epoch, so several servers need no lease and never compare their
 * clocks. A clock that leaps ahead ends one epoch early and no more. Time in which no server runs does not count.
 */
export class EpochCounter implements StoreEpochs {
  readonly epochMs: number = EPOCH_MS
  readonly #records: RecordStore
  readonly #environment: Pick<Environment, 'monotonicMs'>
  #seen: Sighting | undefined
  #looked: Sighting | undefined

  constructor(records: RecordStore, environment: Pick<Environment, 'monotonicMs'>) {
    this.#records = records
    this.#environment = environment
  }

  async current(): Promise<StoreEpoch> {
    const key = epochKey()
    const atMs = this.#environment.monotonicMs()
    const [value] = await this.#records.getMany([key])
    const epoch = asEpoch(key, value)
    this.#looked = { epoch: epoch.number, atMs }
    return epoch
  }

  /** The epoch as it was at the last look, if that was a moment ago; otherwise looks. */
  async recent(): Promise<number> {
    const looked = this.#looked
    const isRecent = looked !== undefined && this.#environment.monotonicMs() - looked.atMs < RECENT_MS
    return isRecent ? looked.epoch : (await this.current()).number
  }

  /**
   * Looks at the epoch, and advances it when it has stood long enough. To be called again and again. Whether this server
   * advanced it: one of all servers does for each epoch, so that can do what one of them should.
   */
  async advanceWhenDue(): Promise<boolean> {
    const { number } = await this.current()
    const nowMs = this.#environment.monotonicMs()
    if (this.#seen?.epoch !== number) this.#seen = { epoch: number, atMs: nowMs }
    else if (nowMs - this.#seen.atMs >= this.epochMs) return this.advance()
    return false
  }

  /** Begins the next epoch, or one that is later; `false` if another server just did. */
  async advance(by = 1): Promise<boolean> {
    const { number, expectation } = await this.current()
    const { key } = expectation
    const { ok } = await this.#records.commit({
      put: [{ key, value: encodeEpoch(key, number + by) }],
      expect: [expectation],
    })
    return ok
  }
}
