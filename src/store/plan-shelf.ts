import type { DeflatePool } from '../compression/deflate-pool.ts'
import { StowageError } from '../errors.ts'
import type { IdSet } from '../object/id-set.ts'
import { Semaphore } from '../semaphore.ts'
import type { BlobStore, RecordStore } from '../storage/backend.ts'
import { ByteCache } from './byte-cache.ts'
import { countObjects } from './closure.ts'
import { keyBounds, planBlobName, planKey } from './keys.ts'
import { locate, LOOKUP_KEYS } from './locator.ts'
import type { PackCatalog, ProjectView } from './pack-catalog.ts'
import { decodePlanTables } from './plan-format.ts'
import { PlanMaker, type PlanOrder } from './plan-maker.ts'
import { LoadedPlan } from './planned-selection.ts'
import { decodePlanRecord, encodePlanRecord, type PlanRecord } from './records.ts'
import type { SegmentReader } from './segment-reader.ts'
import { readSource } from './segment-reader.ts'
import { PlanLedger } from './plan-ledger.ts'

/** Plans of closures up to this size are kept in memory alone: they are made again in less time than a sync takes. */
const KEPT_IN_MEMORY_OBJECTS_MAX = 1_000

export interface PlanShelfParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly deflate: DeflatePool
  readonly newId: () => string
  /** Bytes of plans held in memory, and of plan blobs in storage. */
  readonly cacheBytes: number
  readonly storedBytesMax: number
}

/** Finds, makes and keeps plans. They are caches: one that is lost, damaged or evicted is made again. */
export class PlanShelf {
  readonly #parts: PlanShelfParts
  readonly #loaded: ByteCache<LoadedPlan | undefined>
  readonly #making = new Map<string, Promise<LoadedPlan>>()
  readonly #oneAtATime = new Semaphore(1)
  readonly #ledger: PlanLedger

  constructor(parts: PlanShelfParts) {
    this.#parts = parts
    this.#loaded = new ByteCache(parts.cacheBytes, (plan) => plan?.memoryBytes ?? 0)
    this.#ledger = new PlanLedger(parts.records, parts.blobs, parts.storedBytesMax)
  }

  /** The plan of a root (`variant` names what is subtracted), if there is one that still holds. */
  async find(project: ProjectView, rootId: string, variant: string, signal: AbortSignal): Promise<LoadedPlan | undefined> {
    const key = planKey(project.projectId, project.generation, rootId, variant)
    const name = nameOf(key)
    const plan = await this.#loaded.get(name, () => this.#load(project, key))
    if (plan === undefined || !(await this.#stillHolds(plan, project, signal))) {
      this.#loaded.delete(name)
      return undefined
    }
    this.#ledger.used(name)
    return plan
  }

  /** Makes a plan, once for all who ask for it at the same time. */
  make(order: PlanOrder, rootId: string, variant: string, signal: AbortSignal): Promise<LoadedPlan> {
    const { projectId, generation } = order.project
    const key = planKey(projectId, generation, rootId, variant)
    const name = `${order.closure.sequence}\0${nameOf(key)}`
    const making = this.#making.get(name) ?? this.#oneAtATime.run(signal, () => this.#make(order, key, signal))
    if (!this.#making.has(name)) {
      this.#making.set(name, making)
      making.catch(() => undefined).finally(() => this.#making.delete(name))
    }
    return making
  }

  /** Waits until no plan is being made. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#making.values())
  }

  clear(): void {
    this.#loaded.clear()
  }

  async #make(order: PlanOrder, key: Uint8Array, signal: AbortSignal): Promise<LoadedPlan> {
    const { catalog, reader, deflate, newId } = this.#parts
    const maker = new PlanMaker(order, catalog, reader, deflate)
    const planId = newId()
    const isSmall = countObjects(order.closure.packs) <= KEPT_IN_MEMORY_OBJECTS_MAX
    const plan = isSmall ? await makeInMemory(maker, planId, signal) : await this.#makeStored(maker, order, key, planId, signal)
    const name = nameOf(key)
    this.#loaded.delete(name)
    return (await this.#loaded.get(name, () => Promise.resolve(plan))) as LoadedPlan
  }

  async #makeStored(maker: PlanMaker, { project, closure }: PlanOrder, key: Uint8Array, planId: string, signal: AbortSignal): Promise<LoadedPlan> {
    const { records, blobs } = this.#parts
    const blobName = planBlobName(project.projectId, planId)
    let planBytes = 0
    const made = await maker.make(planId, async (content) => void ({ size: planBytes } = await blobs.put(blobName, content, { signal })), signal)
    const record: PlanRecord = { planId, planBytes, tablesStart: made.tablesStart, missing: closure.missing.size, sequence: closure.sequence }
    await records.commit({ put: [{ key, value: encodePlanRecord(key, record) }] })
    const plan = new LoadedPlan({ blob: blobName }, made.tables)
    await this.#ledger.added(nameOf(key), { key, blobName, bytes: planBytes, plan })
    return plan
  }

  async #load(project: ProjectView, key: Uint8Array): Promise<LoadedPlan | undefined> {
    const { records, blobs } = this.#parts
    const [value] = await records.getMany([key])
    if (value === undefined) return undefined
    try {
      const record = decodePlanRecord(key, value)
      const source = { blob: planBlobName(project.projectId, record.planId) }
      const plan = new LoadedPlan(source, decodePlanTables(await readSource(blobs, source, record.tablesStart, record.planBytes)))
      await this.#ledger.added(nameOf(key), { key, blobName: source.blob, bytes: record.planBytes, plan })
      return plan
    } catch (error) {
      if (error instanceof StowageError && error.retryable) throw error
      await records.commit({ remove: [key] })
      return undefined
    }
  }

  /** A complete plan always holds. Others do while everything that was absent still is. */
  async #stillHolds(plan: LoadedPlan, project: ProjectView, signal: AbortSignal): Promise<boolean> {
    const { missing, absentClaims } = plan.tables
    if (missing.size + absentClaims.size === 0 || plan.checkedSequence === project.sequence) return true
    const isQuiet = await this.#isQuiet(project)
    for (const ids of [missing, absentClaims]) if (!(await this.#allAbsent(project, ids, signal))) return false
    // An upload that is committed but not applied yet may still bring one of them, without another step of the sequence.
    if (isQuiet) plan.checkedSequence = project.sequence
    return true
  }

  async #allAbsent(project: ProjectView, ids: IdSet, signal: AbortSignal): Promise<boolean> {
    for (let first = 0; first < ids.size; first += LOOKUP_KEYS) {
      const some: Uint8Array[] = []
      for (let i = first; i < Math.min(ids.size, first + LOOKUP_KEYS); i++) some.push(ids.bytesAt(i))
      const locations = await locate(this.#parts.records, project, some, signal)
      if (locations.some((location) => location !== undefined)) return false
    }
    return true
  }

  async #isQuiet({ projectId, generation }: ProjectView): Promise<boolean> {
    for await (const entries of this.#parts.records.range({ ...keyBounds('pending', projectId, generation), limit: 1 })) {
      if (entries.length > 0) return false
    }
    return true
  }
}

async function makeInMemory(maker: PlanMaker, planId: string, signal: AbortSignal): Promise<LoadedPlan> {
  const chunks: Uint8Array[] = []
  const { tables } = await maker.make(planId, async (content) => void (await collect(content, chunks)), signal)
  return new LoadedPlan({ bytes: Buffer.concat(chunks) }, tables)
}

async function collect(content: AsyncIterable<Uint8Array>, chunks: Uint8Array[]): Promise<void> {
  for await (const chunk of content) chunks.push(chunk)
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8')
}
