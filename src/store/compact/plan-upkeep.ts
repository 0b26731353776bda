import type { Environment } from '../../environment.ts'
import type { ReadRoots } from '../../object/collection.ts'
import type { BlobStore, RecordStore } from '../../storage/backend.ts'
import type { MemoryBudget } from '../../memory/memory-budget.ts'
import { readPlanTables } from '../plan/read-plan.ts'
import { locate } from '../records/locator.ts'
import { condemnedBlobKey, keyBounds, keyParts, parseHex, planBlobName, planKey } from '../records/keys.ts'
import { onlyIfDamaged } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { decodePackRecord, isRetired } from '../records/pack-record.ts'
import { viewProject } from '../records/projects.ts'
import { decodePlanRecord, encodeCondemnedBlob, encodePlanRecord, type PlanRecord } from '../records/records.ts'
import { newestFirst, newestOfGroups } from './newest-roots.ts'

/** Plans of older versions may have this share of the bytes of the project's packs; the newest ones come first. */
const OLDER_PLANS_SHARE = 1 / 16

export interface PlanUpkeepParts {
  readonly records: RecordStore
  readonly blobs: BlobStore
  readonly environment: Environment
  readonly budget: Pick<MemoryBudget, 'bufferPool'>
  readonly epoch: () => Promise<number>
  /** Makes the plan of a root anew; answers use the one that is there until then. */
  readonly replan: (projectId: string, rootId: string, signal: AbortSignal) => Promise<void>
}

/** A stored plan. */
interface PlanEntry {
  readonly key: Uint8Array
  readonly value: Uint8Array
  readonly record: PlanRecord
}

/** The same with the name of what it is a plan of. */
interface StoredPlan extends PlanEntry {
  readonly rootId: string
  readonly variant: string
}

/** Packs whose objects lie in merged packs now, and the last layout at which one was retired. */
interface RetiredPacks {
  readonly sequences: ReadonlySet<number>
  readonly layout: number
  readonly activeBytes: number
}

/**
 * Keeps plans in step with merges. A plan that names retired packs serves on as long as their blobs are there. Before
 * these go, the plans of the newest roots are made anew, so that no download has to wait; others are dropped.
 */
export class PlanUpkeep {
  readonly #parts: PlanUpkeepParts

  constructor(parts: PlanUpkeepParts) {
    this.#parts = parts
  }

  /** Sees to all plans of a project that name retired packs, or whose roots are gone. Repeatable. */
  async renew(projectId: string, readRoots: ReadRoots, signal: AbortSignal): Promise<void> {
    const { records, replan } = this.#parts
    const project = await viewProject(records, projectId, signal)
    // Looking for retired packs reads them all: projects of small models have no stored plans.
    if (project === undefined || !(await this.#hasPlans(project, signal))) return
    const retired = await this.#retired(project, signal)
    if (retired.sequences.size === 0) return
    const outdated = await this.#outdated(project, retired, signal)
    if (outdated.length === 0) return
    const planned = new Set(outdated.filter(({ variant }) => variant === '').map(({ rootId }) => rootId))
    const roots = await newestFirst(records, project, await readRoots(), signal)
    const newest = new Set(newestOfGroups(roots))
    for (const { root } of newest)
      if (planned.has(root.rootObjectId)) await replan(projectId, root.rootObjectId, signal).catch(onlyIfDamaged)
    let bytesLeft = retired.activeBytes * OLDER_PLANS_SHARE
    for (const { root } of roots.filter((held) => !newest.has(held))) {
      if (planned.has(root.rootObjectId)) await replan(projectId, root.rootObjectId, signal).catch(onlyIfDamaged)
      const plan = await this.#storedPlan(project, root.rootObjectId)
      if (plan === undefined) continue
      bytesLeft -= plan.record.planBytes
      if (bytesLeft >= 0) continue
      // It shows only now how large the plan is.
      await this.#drop(projectId, plan)
      break
    }
    for (const plan of outdated) await this.#drop(projectId, plan)
  }

  async #hasPlans({ projectId, generation }: ProjectView, signal: AbortSignal): Promise<boolean> {
    const bounds = { ...keyBounds('plan', projectId, generation), limit: 1 }
    for await (const entries of this.#parts.records.range(bounds, { signal })) if (entries.length > 0) return true
    return false
  }

  async #retired(project: ProjectView, signal: AbortSignal): Promise<RetiredPacks> {
    const { projectId, generation, layout } = project
    const sequences = new Set<number>()
    let last = 0
    let activeBytes = 0
    for await (const entries of this.#parts.records.range(keyBounds('pack', projectId, generation), { signal })) {
      for (const { key, value } of entries) {
        const record = decodePackRecord(key, value)
        if (!isRetired(record, layout)) {
          activeBytes += record.packBytes
          continue
        }
        sequences.add(parseHex(keyParts(key)[2]))
        last = Math.max(last, record.retiredAt)
      }
    }
    return { sequences, layout: last, activeBytes }
  }

  /**
   * Plans that name retired packs, and those of roots that were freed, which hold copies of what was freed with them. Of
   * the others it is noted that they hold in this layout, too.
   */
  async #outdated(project: ProjectView, retired: RetiredPacks, signal: AbortSignal): Promise<StoredPlan[]> {
    const { records } = this.#parts
    const { projectId, generation, layout } = project
    const outdated: StoredPlan[] = []
    for await (const entries of records.range(keyBounds('plan', projectId, generation), { signal })) {
      for (const { key, value } of entries) {
        const record = decodePlanRecord(key, value)
        if (record.layout >= retired.layout) continue
        const [, , rootId, variant] = keyParts(key)
        const plan = { key, value, record, rootId, variant }
        const [root] = await locate(records, project, [Buffer.from(rootId, 'utf8')], signal)
        if (root === undefined || (await this.#names(projectId, plan, retired))) outdated.push(plan)
        else
          await records.commit({
            put: [{ key, value: encodePlanRecord(key, { ...record, layout }) }],
            expect: [{ key, value }],
          })
      }
    }
    return outdated
  }

  async #names(projectId: string, { record }: StoredPlan, { sequences }: RetiredPacks): Promise<boolean> {
    const { blobs, budget, environment } = this.#parts
    const reading = { blobs, environment, bufferPool: budget.bufferPool }
    const tables = await readPlanTables(reading, planBlobName(projectId, record.planId), record).catch(onlyIfDamaged)
    if (tables === undefined) return true
    return [...tables.packs, ...(tables.closure?.packs ?? [])].some(({ sequence }) => sequences.has(sequence))
  }

  async #storedPlan({ projectId, generation }: ProjectView, rootId: string): Promise<PlanEntry | undefined> {
    const key = planKey(projectId, generation, rootId, '')
    const [value] = await this.#parts.records.getMany([key])
    return value === undefined ? undefined : { key, value, record: decodePlanRecord(key, value) }
  }

  /** Unless it was made anew meanwhile. Answers that are sent by it read on: its blob stays for a day. */
  async #drop(projectId: string, { key, value, record }: PlanEntry): Promise<void> {
    const mark = condemnedBlobKey(projectId, planBlobName(projectId, record.planId))
    const epoch = await this.#parts.epoch()
    await this.#parts.records.commit({
      put: [{ key: mark, value: encodeCondemnedBlob(mark, { epoch, isRemoved: false }) }],
      remove: [key],
      expect: [{ key, value }],
    })
  }
}
