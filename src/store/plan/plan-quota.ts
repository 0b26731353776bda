import type { Environment } from '../../environment.ts'
import type { Janitor } from '../../object/janitor.ts'
import type { Expectation, RecordStore } from '../../storage/backend.ts'
import { keyBounds, keyParts, planBlobName } from '../records/keys.ts'
import { PlanRefCount } from './planned-selection.ts'
import { decodePlanRecord } from '../records/records.ts'
import type { PlanEntry, PlanRecords } from './plan-records.ts'

/** The blob of a plan that went stays at least so long, and about so long. */
const CONDEMNED_MS = 25 * 60 * 60_000
/** In that time one server may make plans for so many times the room of the plans that count. */
const MADE_FACTOR_MAX = 8
/** How often the janitor looks for the plans of other servers. */
const SURVEY_INTERVAL_MS = 60_000

export interface PlanQuotaOptions {
  readonly bytesMax: number
  readonly environment: Pick<Environment, 'monotonicMs'>
  readonly janitor: Janitor
}

export interface StoredPlan extends PlanEntry {
  readonly bytes: number
  readonly use: PlanRefCount
}

/**
 * Keeps the plans in storage under a bound of bytes. One server, the janitor, counts those of all servers and evicts: the
 * ones that it did not use for longest go first, unless it is sending an answer by them. A plan that another server uses
 * may go as well, since that server makes it again.
 */
export class PlanQuota {
  readonly #records: RecordStore
  readonly #stored: PlanRecords
  readonly #bytesMax: number
  readonly #environment: Pick<Environment, 'monotonicMs'>
  readonly #janitor: Janitor
  /** In the order of their last use. */
  readonly #plans = new Map<string, StoredPlan>()
  #bytes = 0
  /** What this server made lately. */
  readonly #made: { readonly atMs: number; readonly bytes: number }[] = []
  #surveying: Promise<void> | undefined
  #surveyedAtMs = -Infinity

  constructor(records: RecordStore, stored: PlanRecords, { bytesMax, environment, janitor }: PlanQuotaOptions) {
    this.#environment = environment
    this.#janitor = janitor
    this.#records = records
    this.#stored = stored
    this.#bytesMax = bytesMax
  }

  /**
   * Whether one more plan may be stored. Plans that went lately take room for a day; when that may be too much, answers
   * go without plans rather than fill the disk.
   */
  get hasRoom(): boolean {
    const since = this.#environment.monotonicMs() - CONDEMNED_MS
    while (this.#made.length > 0 && this.#made[0].atMs < since) this.#made.shift()
    return this.#made.reduce((sum, { bytes }) => sum + bytes, 0) <= MADE_FACTOR_MAX * this.#bytesMax
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
    if (replaced !== undefined) replaced.use.isRetired = true
    this.#made.push({ atMs: this.#environment.monotonicMs(), bytes: stored.bytes })
    await this.makeRoom(name)
  }

  /**
   * Notes a plan that was found in storage, and makes room. Which of two is the current one only their records know, so
   * nothing is replaced.
   */
  async found(name: string, stored: StoredPlan): Promise<void> {
    this.#note(name, stored)
    await this.makeRoom(name)
  }

  /** Evicts while there are too many, if this server is the janitor. */
  async makeRoom(keep?: string): Promise<void> {
    // Others look as well while they know of too many: the janitor has dropped some of them.
    if (this.#janitor.fence !== undefined || this.#bytes > this.#bytesMax) await this.#surveyWhenDue()
    for (const [candidate, plan] of this.#plans) {
      const { fence } = this.#janitor
      if (this.#bytes <= this.#bytesMax || fence === undefined) return
      if (candidate !== keep && plan.use.answers === 0) await this.#evict(candidate, plan, fence)
    }
  }

  async #evict(name: string, plan: StoredPlan, fence: Expectation): Promise<void> {
    plan.use.isRetired = true
    this.#plans.delete(name)
    this.#bytes -= plan.bytes
    await this.#stored.drop(keyParts(plan.key)[0], plan, fence)
  }

  #note(name: string, stored: StoredPlan): StoredPlan | undefined {
    const replaced = this.#plans.get(name)
    if (replaced !== undefined) this.#bytes -= replaced.bytes
    this.#plans.delete(name)
    this.#plans.set(name, stored)
    this.#bytes += stored.bytes
    return replaced
  }

  async #surveyWhenDue(): Promise<void> {
    if (this.#environment.monotonicMs() - this.#surveyedAtMs >= SURVEY_INTERVAL_MS)
      this.#surveying ??= this.#survey().finally(() => {
        this.#surveying = undefined
      })
    await this.#surveying
  }

  /**
   * Finds what other servers made and dropped. What was there before this server counts as used before the rest, and what
   * came since as used just now.
   */
  async #survey(): Promise<void> {
    const atMs = this.#environment.monotonicMs()
    const isFirst = this.#surveyedAtMs === -Infinity
    const known = new Set(this.#plans.keys())
    const found: [string, StoredPlan][] = []
    for await (const entries of this.#records.range(keyBounds('plan'))) {
      for (const { key, value } of entries) {
        const stored = storedPlan(key, value)
        const name = nameOf(key)
        known.delete(name)
        if (stored !== undefined && this.#plans.get(name)?.blobName !== stored.blobName) found.push([name, stored])
      }
    }
    for (const name of known) this.#forget(name)
    const names = new Set(found.map(([name]) => name))
    const rest = isFirst ? [...this.#plans].filter(([name]) => !names.has(name)) : []
    for (const [name, stored] of [...found, ...rest]) this.#note(name, stored)
    this.#surveyedAtMs = atMs
  }

  #forget(name: string): void {
    this.#bytes -= this.#plans.get(name)?.bytes ?? 0
    this.#plans.delete(name)
  }
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8')
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
