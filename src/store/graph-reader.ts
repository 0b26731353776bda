import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  ClosureOptions,
  ClosureSelector,
  HaveRoot,
  ObjectPresence,
  ObjectSelector,
  SignalOptions,
} from '../object/graph-store.ts'
import { IdSet } from '../object/id-set.ts'
import type { HaveOutcome, Selection } from '../object/selection.ts'
import { Semaphore } from '../semaphore.ts'
import type { RecordStore } from '../storage/backend.ts'
import { Bitmap } from './pack/bitmap.ts'
import {
  closureDigest,
  countObjects,
  isCompleteSinceRoot,
  withoutClosures,
  type Closure,
  type PackSelection,
} from './closure/closure.ts'
import { ClosureWalk } from './closure/closure-walk.ts'
import { DeltaSelection } from './delta/delta-selection.ts'
import { GraphSelection } from './graph-selection.ts'
import { locate, LOOKUP_KEYS } from './records/locator.ts'
import type { PackCatalog, ProjectView } from './pack/pack-catalog.ts'
import type { PlanShelf } from './plan/plan-shelf.ts'
import { PlanSelection } from './plan/planned-selection.ts'
import { isQuiet, viewProject } from './records/projects.ts'
import type { ObjectLocation } from './records/records.ts'
import type { SegmentReader } from './pack/segment-reader.ts'
import { SharedTasks } from './shared-task.ts'

/** Each holds the tables of the packs that it walks through. */
const WALKS_AT_ONCE = 2
/** Where more of a graph is new, deltas are not worth what they cost: plans are made for that. */
const DELTAS_SHARE_MAX = 0.8
/** How long an answer waits for its plan, beyond the time that finding its objects took: a plan makes the answer better, but must not hold it up. */
const PLAN_WAIT_MS = { min: 50, max: 500 }

export interface GraphReaderParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly plans: PlanShelf
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
  readonly onPlanFailed: (error: unknown) => void
}

interface FoundRoot {
  readonly project: ProjectView
  readonly rootId: string
  readonly location: ObjectLocation
}

/** Answers questions about what is held, over the packs. */
export class GraphReader implements ObjectPresence, ObjectSelector, ClosureSelector {
  readonly #parts: GraphReaderParts
  readonly #walks = new SharedTasks<Closure>()
  readonly #walking = new Semaphore(WALKS_AT_ONCE)

  constructor(parts: GraphReaderParts) {
    this.#parts = parts
  }

  async has(projectId: string, ids: IdSet, { signal }: SignalOptions): Promise<Uint8Array> {
    const held = new Uint8Array(ids.size)
    const project = await viewProject(this.#parts.records, projectId, signal)
    if (project === undefined) return held
    await this.#locateAll(project, ids, signal, (index, location) => (held[index] = location === undefined ? 0 : 1))
    return held
  }

  async select(projectId: string, ids: IdSet, { signal }: SignalOptions): Promise<Selection> {
    const { records, catalog, reader } = this.#parts
    const missing = new IdSet()
    const wanted = new Map<number, number[]>()
    const project = (await viewProject(records, projectId, signal)) ?? { projectId, generation: 0, sequence: 0 }
    await this.#locateAll(project, ids, signal, (index, location) => {
      if (location === undefined) missing.add(ids.bytesAt(index))
      else if (wanted.get(location.sequence)?.push(location.ordinal) === undefined)
        wanted.set(location.sequence, [location.ordinal])
    })
    const packs: PackSelection[] = []
    for (const sequence of [...wanted.keys()].sort((a, b) => a - b)) {
      const { record } = await catalog.pack(project, sequence)
      const bitmap = Bitmap.empty(record.objects)
      for (const ordinal of wanted.get(sequence) as number[]) bitmap.add(ordinal)
      packs.push({ sequence, packId: record.packId, wanted: bitmap })
    }
    return new GraphSelection(catalog, reader, project, { packs }, { missing })
  }

  async closure(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined> {
    const { signal } = options
    const root = await this.#findRoot(projectId, rootId, signal)
    if (root === undefined) return undefined
    const { outcomes, closures } = await this.#subtractable(root.project, options.have ?? [], signal)
    const have = options.have === undefined ? undefined : outcomes
    const deltas =
      options.deltas === true && closures.length > 0 ? await this.#deltas(root, closures, outcomes, signal) : undefined
    if (deltas !== undefined) return deltas
    const variant = variantOf(closures)
    const plan = await this.#parts.plans.find(root.project, rootId, variant, signal)
    if (plan !== undefined && !plan.use.isRetired)
      return new PlanSelection(plan, this.#parts.catalog, this.#parts.reader, root.project, have)
    return this.#closureAnew(root, closures, variant, have, signal)
  }

  /** Makes the plan of a root ahead of its first download, if everything below it is there; `false` if something is missing. */
  async planAhead(projectId: string, rootId: string): Promise<boolean> {
    const signal = this.#parts.closing
    const root = await this.#findRoot(projectId, rootId, signal)
    if (root === undefined || (await this.#parts.plans.find(root.project, rootId, '', signal)) !== undefined)
      return true
    const closure = await this.#walk(root, signal)
    if (closure.missing.size > 0) return false
    await this.#parts.plans.make({ project: root.project, closure, packs: closure.packs }, rootId, '', signal)
    return true
  }

  async #closureAnew(
    root: FoundRoot,
    subtracted: readonly Closure[],
    variant: string,
    have: readonly HaveOutcome[] | undefined,
    signal: AbortSignal,
  ): Promise<Selection> {
    const { plans, catalog, reader, closing, onPlanFailed } = this.#parts
    const { project, rootId } = root
    const beganAtMs = performance.now()
    const closure = await this.#walk(root, signal)
    const packs =
      subtracted.length === 0
        ? closure.packs
        : withoutClosures(
            closure,
            subtracted.map((had) => had.packs),
          )
    const making = plans.make({ project, closure, packs }, rootId, variant, closing)
    making.catch(onPlanFailed)
    const waitMs = Math.min(PLAN_WAIT_MS.max, Math.max(PLAN_WAIT_MS.min, performance.now() - beganAtMs))
    const plan = await inTime(making, waitMs)
    signal.throwIfAborted()
    if (plan !== undefined && !plan.use.isRetired) return new PlanSelection(plan, catalog, reader, project, have)
    const facts = { missing: closure.missing, closureDigest: closureDigest(closure.packs), have }
    return new GraphSelection(catalog, reader, project, { packs, root: closure.root }, facts)
  }

  /** What is sent once to one client has no plan. `undefined` where little of the graph is held by the client. */
  async #deltas(
    root: FoundRoot,
    subtracted: readonly Closure[],
    have: readonly HaveOutcome[],
    signal: AbortSignal,
  ): Promise<Selection | undefined> {
    const closure = await this.#closureOf(root, signal)
    const packs = withoutClosures(
      closure,
      subtracted.map((had) => had.packs),
    )
    if (countObjects(packs) > Math.max(1, countObjects(closure.packs) * DELTAS_SHARE_MAX)) return undefined
    const facts = { missing: closure.missing, closureDigest: closureDigest(closure.packs), have }
    return new DeltaSelection(
      this.#parts,
      { project: root.project, packs, newer: closure.root, older: subtracted[0].root },
      facts,
    )
  }

  /**
   * One walk for all who ask for the same root at the same time. A walk that began while some upload was writing its ids may have missed ids that were
   * acknowledged since, so it is for who began it alone.
   */
  async #walk({ project, rootId, location }: FoundRoot, signal: AbortSignal): Promise<Closure> {
    const { records, catalog } = this.#parts
    const walk = (signal: AbortSignal): Promise<Closure> =>
      this.#walking.run(signal, () => new ClosureWalk(records, catalog, project, signal).from(location))
    if (!(await isQuiet(records, project))) return walk(signal)
    return this.#walks.run(`${project.projectId}\0${project.generation}\0${project.sequence}\0${rootId}`, signal, walk)
  }

  /** The closures of what the client has, as far as it is sure that the client has all of them. */
  async #subtractable(
    project: ProjectView,
    have: readonly HaveRoot[],
    signal: AbortSignal,
  ): Promise<{ outcomes: HaveOutcome[]; closures: Closure[] }> {
    const outcomes: HaveOutcome[] = []
    const closures: Closure[] = []
    for (const { id, digest } of have) {
      const root = await this.#findRoot(project.projectId, id, signal)
      const closure = root === undefined ? undefined : await this.#closureOf(root, signal)
      const outcome = haveOutcome(closure, digest)
      outcomes.push({ id, outcome })
      if (closure !== undefined && outcome === 'subtracted') closures.push(closure)
    }
    return { outcomes, closures }
  }

  async #closureOf(root: FoundRoot, signal: AbortSignal): Promise<Closure> {
    const plan = await this.#parts.plans.find(root.project, root.rootId, '', signal)
    return plan?.tables.closure ?? (await this.#walk(root, signal))
  }

  async #findRoot(projectId: string, rootId: string, signal: AbortSignal): Promise<FoundRoot | undefined> {
    const { records } = this.#parts
    const project = await viewProject(records, projectId, signal)
    if (project === undefined) return undefined
    const [location] = await locate(records, project, [Buffer.from(rootId, 'utf8')], signal)
    return location === undefined ? undefined : { project, rootId, location }
  }

  async #locateAll(
    project: ProjectView,
    ids: IdSet,
    signal: AbortSignal,
    each: (index: number, location: ObjectLocation | undefined) => void,
  ): Promise<void> {
    for (let first = 0; first < ids.size; first += LOOKUP_KEYS) {
      const some = Array.from({ length: Math.min(LOOKUP_KEYS, ids.size - first) }, (_, i) => ids.bytesAt(first + i))
      const locations = await locate(this.#parts.records, project, some, signal)
      for (const [i, location] of locations.entries()) each(first + i, location)
    }
  }
}

function haveOutcome(closure: Closure | undefined, digest: string | undefined): HaveOutcome['outcome'] {
  if (closure === undefined) return 'unknown'
  if (digest !== undefined) return closureDigest(closure.packs) === digest ? 'subtracted' : 'digest-mismatch'
  return isCompleteSinceRoot(closure) ? 'subtracted' : 'incomplete'
}

/** Names what is subtracted, so that a plan is found again only for the same. */
function variantOf(closures: readonly Closure[]): string {
  if (closures.length === 0) return ''
  const digests = closures.map(({ packs }) => closureDigest(packs)).sort()
  return createHash('sha256').update(digests.join()).digest('hex').slice(0, 32)
}

async function inTime<T>(promise: Promise<T>, waitMs: number): Promise<T | undefined> {
  const timer = new AbortController()
  try {
    return await Promise.race([
      promise.catch(() => undefined),
      delay(waitMs, undefined, { signal: timer.signal }).catch(() => undefined),
    ])
  } finally {
    timer.abort()
  }
}
