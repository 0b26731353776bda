import type { Environment } from '../../environment.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { keyBounds, keyParts, planBlobName } from '../records/keys.ts'
import { PlanRefCount } from './planned-selection.ts'
import { decodePlanRecord } from '../records/records.ts'
import type { PlanEntry, PlanRecords } from './plan-records.ts'

/** The blob of a plan that went stays at least so long, and about so long. */
const CONDEMNED_MS = 25 * 60 * 60_000
/** These blobs may take so many times the room of the plans that count. */
const CONDEMNED_FACTOR_MAX = 8

export interface StoredPlan extends PlanEntry {
  readonly bytes: number
  readonly use: PlanRefCount
}

/**
 * Keeps the plans in storage under a bound of bytes: the ones that were not used for longest go first, unless an answer
 * is being sent by them.
 */
export class PlanQuota {
  readonly #records: RecordStore
  readonly #stored: PlanRecords
  readonly #bytesMax: number
  readonly #environment: Pick<Environment, 'monotonicMs'>
  /** In the order of their last use. */
  readonly #plans = new Map<string, StoredPlan>()
  #bytes = 0
  /** Plans that were evicted or replaced, whose blobs stay for a day. */
  readonly #condemned: { readonly atMs: number; readonly bytes: number }[] = []
  #surveyed: Promise<void> | undefined

  constructor(
    records: RecordStore,
    stored: PlanRecords,
    { bytesMax, environment }: { readonly bytesMax: number; readonly environment: Pick<Environment, 'monotonicMs'> },
  ) {
    this.#environment = environment
    this.#records = records
    this.#stored = stored
    this.#bytesMax = bytesMax
  }

  /**
   * Whether one more plan may be stored. Plans that went lately take room for a day; when that is too much, answers go
   * without plans rather than fill the disk.
   */
  get hasRoom(): boolean {
    const since = this.#environment.monotonicMs() - CONDEMNED_MS
    while (this.#condemned.length > 0 && this.#condemned[0].atMs < since) this.#condemned.shift()
    return this.#condemned.reduce((sum, { bytes }) => sum + bytes, 0) <= CONDEMNED_FACTOR_MAX * this.#bytesMax
  }

  used(name: string): void {
    const plan = this.#plans.get(name)
    if (plan === undefined) return
    this.#plans.delete(name)
    this.#plans.set(name, plan)
  }

  /** The users of the plan in this blob, including those of earlier loads. */
  useOf(name: string, blobName: string): PlanRefCount {
    const known = this.#plans.get(name)
    return known?.blobName === blobName ? known.use : new PlanRefCount()
  }

  /** Notes a plan that was made in place of another one, and makes room. */
  async added(name: string, stored: StoredPlan): Promise<void> {
    const replaced = this.#note(name, stored)
    if (replaced !== undefined) {
      replaced.use.isRetired = true
      this.#condemn(replaced)
    }
    await this.#makeRoom(name)
  }

  /**
   * Notes a plan that was found in storage, and makes room. Which of two is the current one only their records know, so
   * nothing is replaced.
   */
  async found(name: string, stored: StoredPlan): Promise<void> {
    this.#note(name, stored)
    await this.#makeRoom(name)
  }

  async #makeRoom(keep: string): Promise<void> {
    await this.#surveyOnce()
    for (const [candidate, plan] of this.#plans) {
      if (this.#bytes <= this.#bytesMax) return
      if (candidate !== keep && plan.use.answers === 0) await this.#evict(candidate, plan)
    }
  }

  async #evict(name: string, plan: StoredPlan): Promise<void> {
    plan.use.isRetired = true
    this.#plans.delete(name)
    this.#bytes -= plan.bytes
    this.#condemn(plan)
    await this.#stored.drop(keyParts(plan.key)[0], plan)
  }

  #condemn({ bytes }: StoredPlan): void {
    this.#condemned.push({ atMs: this.#environment.monotonicMs(), bytes })
  }

  #note(name: string, stored: StoredPlan): StoredPlan | undefined {
    const replaced = this.#plans.get(name)
    if (replaced !== undefined) this.#bytes -= replaced.bytes
    this.#plans.delete(name)
    this.#plans.set(name, stored)
    this.#bytes += stored.bytes
    return replaced
  }

  async #surveyOnce(): Promise<void> {
    this.#surveyed ??= this.#survey()
    try {
      await this.#surveyed
    } catch (error) {
      this.#surveyed = undefined
      throw error
    }
  }

  /** Plans that were stored before this process began. They count as used before those of now. */
  async #survey(): Promise<void> {
    const earlier: [string, StoredPlan][] = []
    for await (const entries of this.#records.range(keyBounds('plan'))) {
      for (const { key, value } of entries) {
        const stored = storedPlan(key, value)
        if (stored !== undefined) earlier.push([Buffer.from(key).toString('utf8'), stored])
      }
    }
    const current = [...this.#plans]
    this.#plans.clear()
    this.#bytes = 0
    for (const [name, stored] of [...earlier, ...current]) this.#note(name, stored)
  }
}

/** `undefined` for a damaged record: it is replaced when its plan is asked for. */
function storedPlan(key: Uint8Array, value: Uint8Array): StoredPlan | undefined {
  try {
    const { planId, planBytes } = decodePlanRecord(key, value)
    return { key, value, blobName: planBlobName(keyParts(key)[0], planId), bytes: planBytes, use: new PlanRefCount() }
  } catch {
    return undefined
  }
}
