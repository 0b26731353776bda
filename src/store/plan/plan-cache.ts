import type { DeflatePool } from '../../compression/deflate-pool.ts'
import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { Yielder } from '../../async/yielder.ts'
import type { IdSet } from '../../object/id-set.ts'
import type { AbsentIds } from '../closure/absent-ids.ts'
import { linkedAbort } from '../../async/abort.ts'
import type { Janitor } from '../../object/janitor.ts'
import type { MemoryBudget } from '../../memory/memory-budget.ts'
import { Semaphore } from '../../async/semaphore.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import { ByteCache } from '../../memory/byte-cache.ts'
import { type Closure, closureBytes, countObjects, packsBytes, placesDigest } from '../closure/closure.ts'
import { planBlobName, planKey } from '../records/keys.ts'
import { locate, LOOKUP_KEYS } from '../records/locator.ts'
import { onlyIfDamaged, type PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { holdsInLayout, packsAreThere } from './plan-layout.ts'
import { PlanMaker, type PlanRequest } from './plan-maker.ts'
import { loadedPlan, LOOKED_UP_IDS_MAX, makeInMemory } from './loaded-plan.ts'
import type { LoadedPlan } from './planned-selection.ts'
import { isQuiet } from '../records/projects.ts'
import { decodePlanRecord, encodePlanRecord, type PlanRecord } from '../records/records.ts'
import type { SegmentReader } from '../pack/segment-reader.ts'
import { readPlanTables } from './read-plan.ts'
import { hasTextsThatCount } from './plan-texts.ts'
import { PlanQuota } from './plan-quota.ts'
import { PlanRecords } from './plan-records.ts'

/** Plans of closures up to this size are kept in memory alone: they are made again in less time than a sync takes. */
const KEPT_IN_MEMORY_OBJECTS_MAX = 1_000
/** Plans that wait to be made, each with the closure that it is for. Beyond this answers go without. */
const PLANS_WAITING_MAX = 64
/** A row has about 100 bytes, and two blocks of some 15 objects each at least. */
const ROW_BYTES_PER_BITMAP_BYTE = 24
/** The length of an id in a stored plan, and at most so much of a table of fingerprints. */
const ID_BYTES_IN_PLAN = 16
/** Ids that are compared between two checks of the clock. */
const STRETCH_IDS = 512

/**
 * The shortest runs of whole blocks that stay in their packs: in responses that are copied into one piece if that
 * helps, and in others.
 */
const RUN_IN_PLACE_BYTES_MIN = { inOnePiece: 524_288, spliced: 65_536 }
/** A run of so much of the packs stays there in any case: few such runs make up an answer. */
const RUN_SHARE = 8
/**
 * A response is copied into one piece if it needs at most this fraction of the bytes that all plans may have, and at
 * most so many reads. On a disk, making a larger copy slows down the downloads beside it too much.
 */
const COPIED_SHARE = 8
const COPIED_READS_MAX = 64

export interface PlanCacheParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly deflate: DeflatePool
  readonly newId: () => string
  readonly environment: Environment
  readonly budget: MemoryBudget
  /** The server of which it is bounds the plans of all. */
  readonly janitor: Janitor
  /** The store's own time. */
  readonly recentEpoch: () => Promise<number>
  /** Bytes of plans held in memory, and of plan blobs in storage. */
  readonly cacheBytes: number
  readonly storedBytesMax: number
  /** Receives failures that did not harm a response. */
  readonly onError: (error: unknown) => void
}

/** Finds, makes and keeps plans. They are caches: one that is lost, damaged or evicted is made again. */
export class PlanCache {
  readonly #parts: PlanCacheParts
  readonly #loaded: ByteCache<LoadedPlan | undefined>
  readonly #making = new Map<string, Promise<LoadedPlan | undefined>>()
  readonly #oneAtATime = new Semaphore(1)
  readonly #stored: PlanRecords
  readonly #quota: PlanQuota

  constructor(parts: PlanCacheParts) {
    this.#parts = parts
    this.#loaded = new ByteCache(parts.cacheBytes, (plan) => plan?.cachedBytes ?? 0)
    this.#stored = new PlanRecords(parts)
    this.#quota = new PlanQuota(parts.records, this.#stored, {
      bytesMax: parts.storedBytesMax,
      environment: parts.environment,
      janitor: parts.janitor,
    })
  }

  /** The plan of a root (`variant` names the subtracted closures), if there is a valid one. */
  async find(
    project: ProjectView,
    rootId: string,
    variant: string,
    signal: AbortSignal,
  ): Promise<LoadedPlan | undefined> {
    const key = planKey(project.projectId, project.generation, rootId, variant)
    const name = nameOf(key)
    for (let isOutdated = true; isOutdated;) {
      const loading = this.#loaded.get(name, () => this.#load(project, key))
      const plan = await loading
      isOutdated = plan !== undefined && !(await this.#isCurrent(plan, project, key))
      const isUsable = plan !== undefined && !isOutdated && !plan.use.isRetired
      if (isUsable && (await this.#stillHolds(plan, project, signal))) {
        this.#quota.used(name)
        return plan
      }
      this.#loaded.delete(name, loading)
    }
    return undefined
  }

  /**
   * Makes a plan, once for all who ask for the same one at the same time. `undefined` when so many wait already, or so
   * little memory is free, that it is better to do without. Rejects with `overloaded` when its memory is needed for
   * others.
   */
  make(order: PlanRequest, rootId: string, variant: string, signal: AbortSignal): Promise<LoadedPlan | undefined> {
    const { projectId, generation } = order.project
    const key = planKey(projectId, generation, rootId, variant)
    const name = `${placesDigest(order.closure.packs)}\0${nameOf(key)}`
    const running = this.#making.get(name)
    if (running !== undefined) return running
    if (this.#making.size >= PLANS_WAITING_MAX) return Promise.resolve(undefined)
    const { controller, unlink } = linkedAbort(signal)
    const own = controller.signal
    const { party } = order
    const memory = this.#parts.budget.open({ signal: own, party, revoke: (reason) => controller.abort(reason) })
    if (!memory.tryHold(makingBytes(order.closure))) {
      unlink()
      return Promise.resolve(undefined)
    }
    const making = this.#oneAtATime.run(own, () =>
      this.#make(order, key, own).catch(async (error: unknown) => {
        throw await this.#parts.catalog.reasonOf(error, order.project)
      }),
    )
    this.#making.set(name, making)
    making
      .catch(() => undefined)
      .finally(() => {
        memory.release()
        unlink()
        this.#making.delete(name)
      })
    return making
  }

  /** Evicts plans of all servers while there are too many, if this server is to do it. To be called now and then. */
  makeRoom(): Promise<void> {
    return this.#quota.makeRoom()
  }

  /** Waits until no plan is being made. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#making.values())
  }

  clear(): void {
    this.#loaded.clear()
  }

  async #make(order: PlanRequest, key: Uint8Array, signal: AbortSignal): Promise<LoadedPlan | undefined> {
    const { catalog, reader, deflate, newId } = this.#parts
    const planId = newId()
    const { packs, missing, absentClaims } = order.closure
    const isSmall =
      countObjects(packs) <= KEPT_IN_MEMORY_OBJECTS_MAX && missing.size + absentClaims.size <= LOOKED_UP_IDS_MAX
    const runInPlaceBytesMin = isSmall ? RUN_IN_PLACE_BYTES_MIN.spliced : await this.#runInPlaceBytesMin(order)
    const maker = new PlanMaker(order, catalog, reader, deflate, { runInPlaceBytesMin, isStored: !isSmall })
    const plan = isSmall
      ? await makeInMemory(maker, planId, {
          signal,
          layout: order.project.layout,
          madeForLayout: order.project.layout,
          sequence: order.closure.sequence,
          environment: this.#parts.environment,
        })
      : await this.#makeStored(maker, order, key, planId, signal)
    const name = nameOf(key)
    this.#loaded.delete(name)
    return plan === undefined ? undefined : this.#loaded.get(name, () => Promise.resolve(plan))
  }

  /**
   * Packs of small uploads are many small files: their objects are stored once more in one piece, if that leaves room
   * for other plans. A run that is much of the answer stays in place, however short it is: copies of such runs would be
   * copies of whole models.
   */
  async #runInPlaceBytesMin({ project, packs }: PlanRequest): Promise<number> {
    const { inOnePiece, spliced } = RUN_IN_PLACE_BYTES_MIN
    const { blobs, storedBytesMax } = this.#parts
    const bytesMax = Math.min(storedBytesMax / COPIED_SHARE, blobs.readBytesPreferred * COPIED_READS_MAX)
    let packBytes = 0
    for (const { sequence } of packs) {
      packBytes += (await this.#parts.catalog.pack(project, sequence)).record.packBytes
      if (packBytes > bytesMax) return spliced
    }
    return Math.min(inOnePiece, Math.max(spliced, packBytes / RUN_SHARE))
  }

  /** `undefined` if there is no room, or another server was faster with the plan of another closure. */
  async #makeStored(
    maker: PlanMaker,
    { project, closure }: PlanRequest,
    key: Uint8Array,
    planId: string,
    signal: AbortSignal,
  ): Promise<LoadedPlan | undefined> {
    if (!this.#quota.hasRoom) return undefined
    const { blobs } = this.#parts
    const before = await this.#stored.value(key)
    const blobName = planBlobName(project.projectId, planId)
    let planBytes = 0
    const sink = async (content: AsyncIterable<Uint8Array>): Promise<void> => {
      ;({ sizeBytes: planBytes } = await blobs.put(blobName, content, { signal }))
    }
    const made = await maker.make(planId, sink, signal)
    const record: PlanRecord = {
      planId,
      planBytes,
      tablesStart: made.tablesStart,
      missing: closure.missing.size,
      sequence: closure.sequence,
      layout: project.layout,
    }
    const value = encodePlanRecord(key, record)
    const outcome = await this.#stored.put(project, { key, value, blobName }, before)
    if (outcome === 'removed')
      throw new StowageError('not_found', 'the project was removed while a plan was made for it')
    if (outcome === 'late') {
      const theirs = await this.#load(project, key)
      return theirs?.tables.closureDigest === made.tables.closureDigest ? theirs : undefined
    }
    const plan = await loadedPlan({ blob: blobName }, made.tables, {
      layout: project.layout,
      madeForLayout: project.layout,
      sequence: closure.sequence,
      environment: this.#parts.environment,
    })
    // A failure to make room for a plan is no reason to do without it.
    await this.#quota
      .added(nameOf(key), { key, value, blobName, bytes: planBytes, use: plan.use })
      .catch(this.#parts.onError)
    return plan
  }

  async #load(project: ProjectView, key: Uint8Array): Promise<LoadedPlan | undefined> {
    const { blobs, budget, environment, onError } = this.#parts
    const { layout } = project
    const value = await this.#stored.value(key)
    if (value === undefined) return undefined
    let blobName: string | undefined
    try {
      const record = decodePlanRecord(key, value)
      blobName = planBlobName(project.projectId, record.planId)
      const use = this.#quota.useOf(nameOf(key), blobName)
      const tables = await readPlanTables({ blobs, environment, bufferPool: budget.bufferPool }, blobName, record)
      if (!(await packsAreThere(this.#parts, project, tables))) {
        await this.#stored.drop(project.projectId, { key, value, blobName })
        return undefined
      }
      await this.#quota.found(nameOf(key), { key, value, blobName, bytes: record.planBytes, use }).catch(onError)
      return await loadedPlan({ blob: blobName }, tables, { use, layout, sequence: record.sequence, environment })
    } catch (error) {
      const reason = await this.#parts.catalog.reasonOf(error, project)
      // A project that was removed meanwhile takes its plans along: no damage.
      if (!(reason instanceof StowageError) || reason.isRetryable || reason.code === 'not_found') throw reason
      onError(reason)
      await this.#stored.drop(project.projectId, { key, value, blobName }).catch(onError)
      return undefined
    }
  }

  /** Whether the loaded plan is still the one that counts. */
  async #isCurrent(plan: LoadedPlan, project: ProjectView, key: Uint8Array): Promise<boolean> {
    return (await this.#stored.stillNames(plan, project, key)) && (await holdsInLayout(this.#parts, plan, project, key))
  }

  /** A complete plan holds as long as its texts count. Others do while everything that was absent still is. */
  async #stillHolds(plan: LoadedPlan, project: ProjectView, signal: AbortSignal): Promise<boolean> {
    if (!((await hasTextsThatCount(this.#parts, plan, project, signal).catch(onlyIfDamaged)) ?? false)) return false
    const { missing, absentClaims } = plan.tables
    if (plan.absent !== undefined) {
      if (plan.checkedSequence === project.sequence) return true
      return (await this.#stillAbsent(plan, plan.absent, project, signal).catch(onlyIfDamaged)) ?? false
    }
    if (missing.size + absentClaims.size === 0 || plan.checkedSequence === project.sequence) return true
    const wasQuiet = await isQuiet(this.#parts.records, project)
    for (const ids of [missing, absentClaims]) if (!(await this.#allAbsent(project, ids, signal))) return false
    // An upload that is committed but not applied yet may still bring one of them, without another step of the
    // sequence.
    if (wasQuiet) plan.checkedSequence = project.sequence
    return true
  }

  /**
   * Very many ids are not looked up: whatever has come since they were absent lies in the packs that have come since.
   */
  async #stillAbsent(plan: LoadedPlan, absent: AbsentIds, project: ProjectView, signal: AbortSignal): Promise<boolean> {
    const { catalog } = this.#parts
    const yielder = new Yielder(this.#parts.environment)
    for await (const pack of catalog.packsFrom(project, plan.checkedSequence, signal)) {
      const { sequence } = pack
      const hasOne = await catalog.withTables(pack, async ({ ids: { ends, bytes } }) => {
        for (let ordinal = 0; ordinal < ends.length; ordinal++) {
          if (absent.has(bytes, ordinal === 0 ? 0 : ends[ordinal - 1], ends[ordinal])) return true
          if (ordinal % STRETCH_IDS === 0) await yielder.due()
        }
        return false
      })
      if (hasOne) return false
      plan.checkedSequence = Math.max(plan.checkedSequence, sequence + 1)
    }
    plan.checkedSequence = Math.max(plan.checkedSequence, project.sequence)
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
}

/**
 * The memory of a plan while it waits and is made: the closure, its rows, and its ids once in their stored form and
 * once in their remembered form.
 */
function makingBytes(closure: Closure): number {
  const { packs, missing, absentClaims } = closure
  const count = missing.size + absentClaims.size
  const rows = ROW_BYTES_PER_BITMAP_BYTE * packsBytes(packs)
  return closureBytes(closure) + rows + missing.idBytes + absentClaims.idBytes + ID_BYTES_IN_PLAN * count
}

function nameOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8')
}
