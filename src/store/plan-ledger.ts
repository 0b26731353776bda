import type { BlobStore, RecordStore } from '../storage/backend.ts'
import { keyBounds, keyParts, planBlobName } from './keys.ts'
import type { LoadedPlan } from './planned-selection.ts'
import { decodePlanRecord } from './records.ts'

export interface StoredPlan {
  readonly key: Uint8Array
  readonly blobName: string
  readonly bytes: number
  readonly plan?: LoadedPlan
}

/** Keeps the plans in storage under a bound of bytes: the ones that were not used for longest go first, unless an answer is being sent by them. */
export class PlanLedger {
  readonly #records: RecordStore
  readonly #blobs: BlobStore
  readonly #bytesMax: number
  /** In the order of their last use. */
  readonly #plans = new Map<string, StoredPlan>()
  #bytes = 0
  #surveyed: Promise<void> | undefined

  constructor(records: RecordStore, blobs: BlobStore, bytesMax: number) {
    this.#records = records
    this.#blobs = blobs
    this.#bytesMax = bytesMax
  }

  used(name: string): void {
    const plan = this.#plans.get(name)
    if (plan === undefined) return
    this.#plans.delete(name)
    this.#plans.set(name, plan)
  }

  /** Notes a plan that is in storage, and makes room. One that it replaces is removed. */
  async added(name: string, stored: StoredPlan): Promise<void> {
    this.#surveyed ??= this.#survey()
    await this.#surveyed
    const replaced = this.#note(name, stored)
    // A replaced plan that answers are still being sent by is left to the sweep of blobs that nothing names.
    const isReplaced = replaced !== undefined && replaced.blobName !== stored.blobName && (replaced.plan?.users ?? 0) === 0
    if (isReplaced) await this.#blobs.remove([replaced.blobName])
    for (const [candidate, plan] of this.#plans) {
      if (this.#bytes <= this.#bytesMax) return
      if (candidate === name || (plan.plan?.users ?? 0) > 0) continue
      this.#plans.delete(candidate)
      this.#bytes -= plan.bytes
      await this.#records.commit({ remove: [plan.key] })
      await this.#blobs.remove([plan.blobName])
    }
  }

  #note(name: string, stored: StoredPlan): StoredPlan | undefined {
    const replaced = this.#plans.get(name)
    if (replaced !== undefined) this.#bytes -= replaced.bytes
    this.#plans.delete(name)
    this.#plans.set(name, stored)
    this.#bytes += stored.bytes
    return replaced
  }

  /** Plans that were stored before this process began. */
  async #survey(): Promise<void> {
    for await (const entries of this.#records.range(keyBounds('plan'))) {
      for (const { key, value } of entries) {
        const stored = storedPlan(key, value)
        const name = Buffer.from(key).toString('utf8')
        if (stored !== undefined && !this.#plans.has(name)) this.#note(name, stored)
      }
    }
  }
}

/** `undefined` for a damaged record: it is replaced when its plan is asked for. */
function storedPlan(key: Uint8Array, value: Uint8Array): StoredPlan | undefined {
  try {
    const record = decodePlanRecord(key, value)
    return { key, blobName: planBlobName(keyParts(key)[0], record.planId), bytes: record.planBytes }
  } catch {
    return undefined
  }
}
