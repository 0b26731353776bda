import { linkedAbort } from '../../async/abort.ts'
import { sleep } from '../../async/sleep.ts'
import type { DeflatePool } from '../../compression/deflate-pool.ts'
import { isServiceError } from '../../errors.ts'
import type { ReadRoots } from '../../object/collection.ts'
import type { CompactionReport, CompactOptions, GraphCompactor } from '../../object/compaction.ts'
import type { GraphRoot } from '../../object/roots.ts'
import type { MemoryBudget } from '../../memory/memory-budget.ts'
import { Bitmap } from '../bytes/bitmap.ts'
import type { Closure, PackSelection } from '../closure/closure.ts'
import { keyBounds, keyParts, parseHex } from '../records/keys.ts'
import { type Pack, onlyIfDamaged } from '../records/pack-catalog.ts'
import type { ProjectView, StoredProject } from '../records/project-view.ts'
import { isRemoved, readHead, viewProject } from '../records/projects.ts'
import { measured, type ProjectPacks, readPacks } from './active-packs.ts'
import { type BeginParts, beginMerge } from './begin-merge.ts'
import { DamagedPacks } from './damaged-packs.ts'
import { dropRetired } from './drop-retired.ts'
import { choosePacks } from './choose.ts'
import { finishMerge } from './finish-merge.ts'
import { newestFirst, newestOfGroups } from './newest-roots.ts'
import { Pace } from './pace.ts'
import type { PlanUpkeep } from './plan-upkeep.ts'
import { MERGE_BASE_BYTES } from './write.ts'

/** A merged pack is not merged again before so many epochs have begun: readers know one former place of an object. */
const MERGE_AGE_EPOCHS = 2
/** The closures that decide about the order of a merged pack. */
const CLOSURES_MAX = 8
const PACKS_READ_AT_ONCE = 8
/** Of the memory for requests a merge takes at most this share, however many packs there are: it takes fewer of them. */
const MEMORY_SHARE = 3 / 4
/** Of that, the part that is taken while objects are still sorted. */
const INTERNED_SHARE = 2 / 3
/**
 * Requests come first: a merge that they leave no memory for is tried again so often in a row, with less of it, after
 * pauses that grow.
 */
const CROWDED_TRIES_MAX = 8
const CROWDED_PAUSE_MS = 2_000
/** Smaller merges would make too little of it. */
const CROWDED_MEMORY_SHARE_MIN = 1 / 8

export interface CompactorParts extends Omit<BeginParts, 'deflate' | 'memory' | 'pace' | 'windowBytesMax'> {
  /** One lane: compression takes one core at most. */
  readonly openDeflate: () => DeflatePool
  readonly budget: MemoryBudget
  readonly closureOf: (projectId: string, rootId: string, signal: AbortSignal) => Promise<Closure | undefined>
  readonly plans: PlanUpkeep
  /** Called for each damaged pack that a merge leaves as it is. */
  readonly onError: (error: unknown) => void
}

/** Packs to merge. */
interface ChosenPacks {
  readonly project: ProjectView
  readonly packs: readonly Pack[]
  /** Memory that the merge takes, about. */
  readonly memoryBytes: number
}

/** Which packs a compaction may choose. */
interface MergeLimits {
  readonly all: boolean
  /** The last pack. */
  readonly last: number
  /** Less once a merge took more than was expected, or more than requests left. */
  memoryBytesMax: number
  /** Merges in a row that requests left no memory for. */
  crowdedTries: number
  /** Packs that not even a merge of their own has the memory for. */
  readonly tooLarge: Set<number>
}

/** One compaction of a project. */
interface Compacting {
  readonly pace: Pace
  readonly signal: AbortSignal
  readonly readRoots: () => Promise<readonly GraphRoot[]>
}

/** Merges the packs of projects. */
export class PackCompactor implements GraphCompactor {
  readonly #parts: CompactorParts
  readonly #damaged: DamagedPacks

  constructor(parts: CompactorParts) {
    this.#parts = parts
    this.#damaged = new DamagedPacks(parts)
  }

  async compact(projectId: string, roots: ReadRoots, options: CompactOptions): Promise<CompactionReport | undefined> {
    const { records, environment, plans } = this.#parts
    const { signal, all = false, processorShare = 1, onProgress } = options
    const project = await viewProject(records, projectId, signal)
    if (project === undefined) return undefined
    const compacting = { pace: new Pace(environment, processorShare), signal, readRoots: once(roots) }
    await finishMerge(this.#parts, project, compacting.pace, signal)
    // Records of small packs contain the packs, so they are read as seldom as possible.
    let packs = await readPacks(records, projectId, signal)
    const before = measured(packs.active)
    // Packs that come meanwhile wait for the next compaction: otherwise steady uploads would keep this one from its end.
    const last = Math.max(...packs.active.map(({ sequence }) => sequence))
    const progress = { merges: 0, storedBytes: 0, storedBytesTotal: 0 }
    const limits = { all, last, memoryBytesMax: this.#memoryBytesMax, crowdedTries: 0, tooLarge: new Set<number>() }
    let stopped: CompactionReport['stopped'] = null
    while (stopped === null) {
      const chosen = await this.#choose(packs, limits)
      if (chosen === undefined) break
      const bytes = chosen.packs.reduce((sum, { record }) => sum + record.packBytes, 0)
      progress.storedBytesTotal += bytes
      const outcome = await this.#merge(chosen, compacting).catch((error: unknown) =>
        this.#failed(error, chosen, limits, compacting),
      )
      // The others are merged without the damaged ones.
      if (outcome === 'damaged') continue
      if (outcome === 'tooLarge') {
        if (chosen.packs.length === 1) limits.tooLarge.add(chosen.packs[0].sequence)
        else limits.memoryBytesMax = chosen.memoryBytes / 2
        continue
      }
      packs = await readPacks(records, projectId, signal)
      if (outcome === 'crowded') continue
      if (limits.crowdedTries > 0) Object.assign(limits, { crowdedTries: 0, memoryBytesMax: this.#memoryBytesMax })
      if (outcome === 'storageFull') stopped = outcome
      if (outcome !== 'merged') break
      progress.merges++
      progress.storedBytes += bytes
      onProgress?.({ ...progress })
    }
    await plans.renew(projectId, compacting.readRoots, signal)
    const after = measured(packs.active)
    return {
      merges: progress.merges,
      packsBefore: before.packs,
      packsAfter: after.packs,
      storedBytesBefore: before.storedBytes,
      storedBytesAfter: after.storedBytes,
      retiredBytes: packs.retiredBytes,
      stopped,
      ...this.#damaged.among(packs.active.map(({ packId }) => packId)),
    }
  }

  /** Nothing of such a merge stays; the packs are as they were. */
  async #failed(
    error: unknown,
    chosen: ChosenPacks,
    limits: MergeLimits,
    { pace, signal }: Compacting,
  ): Promise<'storageFull' | 'tooLarge' | 'damaged' | 'crowded' | 'refused'> {
    const { project, packs, memoryBytes } = chosen
    if (isServiceError(error) && error.code === 'storage_full') return 'storageFull'
    if (isServiceError(error) && error.code === 'memory_limit_exceeded') return 'tooLarge'
    if (isServiceError(error) && error.code === 'overloaded' && limits.crowdedTries++ < CROWDED_TRIES_MAX) {
      limits.memoryBytesMax = Math.max(memoryBytes / 2, this.#memoryBytesMax * CROWDED_MEMORY_SHARE_MIN)
      await sleep(CROWDED_PAUSE_MS * limits.crowdedTries, this.#parts.environment, { signal })
      await finishMerge(this.#parts, project, pace, signal)
      return 'crowded'
    }
    onlyIfDamaged(error)
    const isAsRead = (): Promise<boolean> => this.#isAsRead(project, signal)
    if (await this.#damaged.find(packs, isAsRead, signal)) return 'damaged'
    if (!(await isAsRead())) return 'refused'
    throw error
  }

  /** Whether the packs are where the view shows them: they went neither into others nor with their project. */
  async #isAsRead({ projectId, generation, layout }: ProjectView, signal: AbortSignal): Promise<boolean> {
    const { head } = await readHead(this.#parts.records, projectId, signal)
    return head === undefined || (!isRemoved(head, generation) && head.layout === layout)
  }

  /** Ends the merge that is under way in a project, if there is one. */
  finishOpenMerge(project: StoredProject, signal: AbortSignal): Promise<void> {
    return finishMerge(this.#parts, project, new Pace(this.#parts.environment, 1), signal)
  }

  /** Ends merges that were cut off, on this or another server. A project that fails does not keep others waiting. */
  async finishOpenMerges(onError: (error: unknown) => void, signal: AbortSignal): Promise<void> {
    const { records, environment } = this.#parts
    const open: StoredProject[] = []
    for await (const entries of records.range(keyBounds('merge'), { signal })) {
      for (const { key } of entries) {
        const [projectId, generation] = keyParts(key)
        open.push({ projectId, generation: parseHex(generation) })
      }
    }
    for (const project of open) {
      signal.throwIfAborted()
      await finishMerge(this.#parts, project, new Pace(environment, 1), signal).catch(onError)
    }
  }

  /**
   * Removes the records of retired packs whose blobs `isDue` to go. Returns false if some stay for now. Plans that still
   * name them are dropped: those of roots were made anew after the merge.
   */
  async dropRetired(projectId: string, isDue: (blobName: string) => boolean, signal: AbortSignal): Promise<boolean> {
    await this.#parts.plans.renew(projectId, () => Promise.resolve([]), signal)
    return dropRetired(this.#parts, projectId, isDue, signal)
  }

  get #memoryBytesMax(): number {
    return this.#parts.budget.limitBytes * MEMORY_SHARE - MERGE_BASE_BYTES
  }

  async #choose(
    { project, active }: ProjectPacks,
    { all, last, memoryBytesMax, tooLarge }: MergeLimits,
  ): Promise<ChosenPacks | undefined> {
    const { catalog, epoch } = this.#parts
    if (project === undefined) return undefined
    const mergedBefore = (await epoch()) - MERGE_AGE_EPOCHS
    const old = active.filter(
      ({ sequence, packId, mergedAt }) =>
        sequence <= last && mergedAt <= mergedBefore && !tooLarge.has(sequence) && !this.#damaged.has(packId),
    )
    const sequences = new Set(choosePacks(old, { all, memoryBytesMax }))
    const chosen = old.filter(({ sequence }) => sequences.has(sequence))
    const packs: Pack[] = []
    for (let first = 0; first < chosen.length; first += PACKS_READ_AT_ONCE) {
      const some = chosen.slice(first, first + PACKS_READ_AT_ONCE)
      packs.push(...(await Promise.all(some.map(({ sequence }) => catalog.pack(project, sequence)))))
    }
    const memoryBytes = chosen.reduce((sum, pack) => sum + pack.memoryBytes, 0)
    return packs.length === 0 ? undefined : { project, packs, memoryBytes }
  }

  async #merge(
    { project, packs, memoryBytes }: ChosenPacks,
    { pace, signal, readRoots }: Compacting,
  ): Promise<'merged' | 'refused'> {
    const { budget, openDeflate } = this.#parts
    const closures = await this.#closures(project, await readRoots(), signal)
    const { controller, unlink } = linkedAbort(signal)
    const own = controller.signal
    const party = { principal: '', projectId: project.projectId, isUpkeep: true }
    // A merge that holds memory that requests need ends.
    const memory = budget.open({ signal: own, party, revoke: (reason) => controller.abort(reason) })
    const deflate = openDeflate()
    try {
      const windowBytesMax = Math.max(0, this.#memoryBytesMax - INTERNED_SHARE * memoryBytes)
      const parts = { ...this.#parts, deflate, memory, pace, windowBytesMax }
      const isBegun = await beginMerge(parts, project, { packs, closures }, own)
      if (!isBegun) return 'refused'
    } finally {
      deflate.close()
      memory.release()
      unlink()
    }
    await finishMerge(this.#parts, project, pace, signal)
    return 'merged'
  }

  async #closures(
    project: ProjectView,
    roots: readonly GraphRoot[],
    signal: AbortSignal,
  ): Promise<(readonly PackSelection[])[]> {
    const { records, closureOf } = this.#parts
    const newest = newestOfGroups(await newestFirst(records, project, roots, signal)).slice(0, CLOSURES_MAX)
    const closures: (readonly PackSelection[])[] = []
    for (const { root } of newest) {
      const closure = await closureOf(project.projectId, root.rootObjectId, signal).catch(onlyIfWithout)
      if (closure !== undefined) closures.push([rootOf(closure)], closure.packs)
    }
    return closures
  }
}

/** A closure that cannot be walked, because of damage or its size, does not decide about the order. */
function onlyIfWithout(error: unknown): undefined {
  if (isServiceError(error) && error.code === 'memory_limit_exceeded') return undefined
  return onlyIfDamaged(error)
}

/** The root has a block of its own: every answer begins with it. */
function rootOf({ root: { sequence, ordinal }, packs }: Closure): PackSelection {
  const pack = packs.find((selection) => selection.sequence === sequence)
  if (pack === undefined) throw new Error('a closure lacks its root')
  const wanted = Bitmap.empty(pack.wanted.bytes.length * 8)
  wanted.add(ordinal)
  return { ...pack, wanted }
}

function once(read: ReadRoots): ReadRoots {
  let reading: ReturnType<ReadRoots> | undefined
  return () => (reading ??= read())
}
