import { createHash } from 'node:crypto'
import type { Environment } from '../environment.ts'
import type {
  ClosureOptions,
  ClosureSelector,
  HaveRoot,
  ObjectPresence,
  ObjectSelector,
  SignalOptions,
  TextOptions,
} from '../object/graph-store.ts'
import { IdSet } from '../object/id-set.ts'
import type { HaveOutcome, Selection } from '../object/selection.ts'
import { StowageError } from '../errors.ts'
import type { BlobStore, RecordStore } from '../storage/backend.ts'
import { countObjects, isCompleteSinceRoot, placesDigest, withoutClosures, type Closure } from './closure/closure.ts'
import type { MemoryBudget, MemoryLease, Party } from '../memory/memory-budget.ts'
import type { DeltaCache } from './delta/delta-cache.ts'
import { DeltaSelection } from './delta/delta-selection.ts'
import { GraphSelection } from './closure/graph-selection.ts'
import { ListFinder, readListed } from './closure/list-finder.ts'
import { ListSelection } from './closure/list-selection.ts'
import { type FoundRoot, SharedWalks } from './closure/shared-walks.ts'
import { readSingleText, type SingleTextParts } from './closure/single-text.ts'
import { locate, LOOKUP_KEYS, type ObjectLocation } from './records/locator.ts'
import { isRetired } from './records/pack-record.ts'
import { OutdatedViewError, type PackCatalog } from './records/pack-catalog.ts'
import type { ProjectView } from './records/project-view.ts'
import type { PlanCache } from './plan/plan-cache.ts'
import { PlanSelection } from './plan/planned-selection.ts'
import { viewProject } from './records/projects.ts'
import { LineReader } from './pack/line-reader.ts'
import type { SegmentReader } from './pack/segment-reader.ts'

/** If more of a graph is new, deltas are not worth their cost: plans exist for that. */
const DELTAS_SHARE_MAX = 0.8
/**
 * How long a response waits for its plan, beyond the time of the walk: a plan makes the response better, but must not
 * hold it up. A request that only a plan can answer as asked, such as the rest of a download that another server began,
 * waits for the maximum.
 */
const PLAN_WAIT_MS = { min: 50, max: 500 }
/** The plan of a larger closure takes longer than its walk: the first byte does not wait for it. */
const AWAITED_OBJECTS_MAX = 20_000

export interface GraphReaderParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly reader: SegmentReader
  readonly blobs: BlobStore
  readonly plans: PlanCache
  readonly deltas: DeltaCache
  readonly environment: Environment
  readonly budget: MemoryBudget
  /** Aborts when the store closes. */
  readonly closing: AbortSignal
  readonly onPlanFailed: (error: unknown) => void
}

/** A request that looked at the project before packs of it were merged looks at it again. */
const VIEWS_MAX = 3

const NO_IDS = new IdSet(0)

const noProject = (projectId: string): ProjectView => ({ projectId, generation: 0, sequence: 0, layout: 0 })

/** Answers questions about stored objects, over the packs. */
export class GraphReader implements ObjectPresence, ObjectSelector, ClosureSelector {
  readonly #parts: GraphReaderParts
  readonly #walks: SharedWalks
  readonly #single: SingleTextParts

  constructor(parts: GraphReaderParts) {
    this.#parts = parts
    this.#single = { ...parts, lines: new LineReader(parts.blobs, parts.reader) }
    this.#walks = new SharedWalks(parts)
  }

  async has(projectId: string, ids: IdSet, { signal }: SignalOptions): Promise<Uint8Array> {
    const held = new Uint8Array(ids.size)
    const project = await viewProject(this.#parts.records, projectId, signal)
    if (project === undefined) return held
    for (let first = 0; first < ids.size; first += LOOKUP_KEYS) {
      const asked = Array.from({ length: Math.min(LOOKUP_KEYS, ids.size - first) }, (_, i) => first + i)
      const found = await readListed(this.#parts, project, ids, asked, signal)
      for (const [i, record] of found.entries()) held[first + i] = record?.state === 'live' ? 1 : 0
    }
    return held
  }

  async select(projectId: string, ids: IdSet, { signal }: SignalOptions): Promise<Selection> {
    const project = (await viewProject(this.#parts.records, projectId, signal)) ?? noProject(projectId)
    const listed = await new ListFinder(this.#parts, project, ids, signal).find()
    return new ListSelection(this.#parts, listed)
  }

  text(projectId: string, id: Uint8Array, options: TextOptions): Promise<Uint8Array | undefined> {
    return readSingleText(this.#single, projectId, id, options)
  }

  closure(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined> {
    return this.#inCurrentView(() => this.#closureInView(projectId, rootId, options))
  }

  /** Repeats the work with a new view of the project if packs that it needs were merged meanwhile. */
  async #inCurrentView<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof OutdatedViewError) || attempt === VIEWS_MAX) throw error
      }
    }
  }

  async #closureInView(projectId: string, rootId: string, options: ClosureOptions): Promise<Selection | undefined> {
    const { signal } = options
    const root = await this.#findRoot(projectId, rootId, options)
    if (root === undefined) return undefined
    const { outcomes, closures } = await this.#subtractable(root.project, options.have ?? [], options)
    const have = options.have === undefined ? undefined : outcomes
    const deltas =
      options.deltas === true && closures.length > 0 ? await this.#deltas(root, closures, outcomes, options) : undefined
    if (deltas !== undefined) return deltas
    const variant = variantOf(closures)
    const plan = await this.#parts.plans.find(root.project, rootId, variant, signal)
    if (plan !== undefined && !plan.use.isRetired)
      return new PlanSelection(plan, this.#parts.catalog, this.#parts.reader, root.project, have)
    return this.#closureAnew(root, closures, variant, have, options)
  }

  /**
   * Makes the plan of a root ahead of its first download, if everything below it is held. `false` if something is
   * missing, or if there is no memory for it now.
   */
  async planAhead(projectId: string, rootId: string): Promise<boolean> {
    const { plans, closing: signal } = this.#parts
    const plan = async (): Promise<boolean> => {
      const root = await this.#findRoot(projectId, rootId, { signal, isUpkeep: true })
      if (root === undefined || (await plans.find(root.project, rootId, '', signal)) !== undefined) return true
      const closure = await this.#walks.closure(root, signal)
      if (closure.missing.size > 0) return false
      await this.#makePlan(root, closure, signal)
      return true
    }
    return (await this.#inCurrentView(plan).catch(onlyIfOverloaded)) ?? false
  }

  /**
   * Makes the plan of a root anew. Until then answers are sent by the one that is there. If there is no memory or no
   * space for it now, that is left to the next answer.
   */
  async replan(projectId: string, rootId: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#inCurrentView(async () => {
        const root = await this.#findRoot(projectId, rootId, { signal, isUpkeep: true })
        if (root !== undefined) await this.#makePlan(root, await this.#walks.closure(root, signal), signal)
      })
    } catch (error) {
      const code = error instanceof StowageError ? error.code : undefined
      if (code !== 'overloaded' && code !== 'memory_limit_exceeded' && code !== 'storage_full') throw error
    }
  }

  #makePlan(root: FoundRoot, closure: Closure, signal: AbortSignal): Promise<unknown> {
    const { project, party, rootId } = root
    return this.#parts.plans.make({ project, closure, packs: closure.packs, party }, rootId, '', signal)
  }

  async #closureAnew(
    root: FoundRoot,
    subtracted: readonly Closure[],
    variant: string,
    have: readonly HaveOutcome[] | undefined,
    { signal, needsPlan = false }: ClosureOptions,
  ): Promise<Selection> {
    const { plans, catalog, reader, closing, environment, onPlanFailed } = this.#parts
    const { rootId, project } = root
    const beganAtMs = environment.monotonicMs()
    const closure = await this.#walks.closure(root, signal)
    const packs =
      subtracted.length === 0
        ? closure.packs
        : withoutClosures(
            closure,
            subtracted.map((had) => had.packs),
          )
    const making = plans.make({ project, closure, packs, party: root.party }, rootId, variant, closing)
    making.catch((error: unknown) => {
      // A request that needed its memory more has taken it, or the project was removed: nothing went wrong.
      const code = error instanceof StowageError ? error.code : undefined
      if (code !== 'overloaded' && code !== 'not_found') onPlanFailed(error)
    })
    const walkMs = environment.monotonicMs() - beganAtMs
    const waitMs = needsPlan ? PLAN_WAIT_MS.max : Math.min(PLAN_WAIT_MS.max, Math.max(PLAN_WAIT_MS.min, walkMs))
    const isAwaited = needsPlan || countObjects(packs) <= AWAITED_OBJECTS_MAX
    const plan = isAwaited ? await inTime(making, waitMs, environment) : undefined
    signal.throwIfAborted()
    if (plan !== undefined && !plan.use.isRetired) return new PlanSelection(plan, catalog, reader, project, have)
    const facts = { missing: closure.missing, closureDigest: closure.digest, have }
    return new GraphSelection(catalog, reader, project, { packs, root: closure.root }, facts)
  }

  /** A response for one client only has no plan. `undefined` if the client holds little of the graph. */
  async #deltas(
    root: FoundRoot,
    subtracted: readonly Closure[],
    have: readonly HaveOutcome[],
    { signal, memory }: ClosureOptions,
  ): Promise<Selection | undefined> {
    const closure = await this.#closureOf(root, signal)
    const packs = withoutClosures(
      closure,
      subtracted.map((had) => had.packs),
    )
    if (countObjects(packs) > Math.max(1, countObjects(closure.packs) * DELTAS_SHARE_MAX)) return undefined
    const facts = { missing: closure.missing, closureDigest: closure.digest, have }
    return new DeltaSelection(
      { ...this.#parts, lines: this.#single.lines },
      { project: root.project, packs, newer: closure.root, older: subtracted[0].root, held: subtracted[0].packs },
      facts,
      { memory, keeping: { cache: this.#parts.deltas, key: deltaKey(root, [closure, ...subtracted]) } },
    )
  }

  /** The closures of the client's roots, if the client certainly has all of them. */
  async #subtractable(
    project: ProjectView,
    have: readonly HaveRoot[],
    { signal, memory }: ClosureOptions,
  ): Promise<{ outcomes: HaveOutcome[]; closures: Closure[] }> {
    const outcomes: HaveOutcome[] = []
    const closures: Closure[] = []
    const ids = have.map(({ id }) => Buffer.from(id, 'utf8'))
    const party = partyOf(project.projectId, memory)
    const locations = await locate(this.#parts.records, project, ids, signal)
    for (const [i, { id, digest }] of have.entries()) {
      const location = locations[i]
      const root = location === undefined ? undefined : { project, rootId: id, location, party }
      const closure = root === undefined ? undefined : await this.#closureOf(root, signal)
      const outcome = haveOutcome(closure, digest, await this.#isLast(project, location))
      outcomes.push({ id, outcome })
      if (closure === undefined || outcome !== 'subtracted') continue
      await memory?.hold(closure.packs.reduce((sum, { wanted }) => sum + wanted.bytes.length, 0))
      // Absent objects of an older version do not affect the response.
      closures.push({ ...closure, absentClaims: NO_IDS })
    }
    return { outcomes, closures }
  }

  /** Whether the object became visible after all that was uploaded before. */
  async #isLast(project: ProjectView, location: ObjectLocation | undefined): Promise<boolean> {
    if (location === undefined) return false
    const { record } = await this.#parts.catalog.pack(project, location.sequence)
    return record.lastOrdinals.includes(location.ordinal)
  }

  /** The closure of a root, from its plan if it has one; `undefined` when the root is not held. */
  closureOf(projectId: string, rootId: string, signal: AbortSignal): Promise<Closure | undefined> {
    return this.#inCurrentView(async () => {
      const root = await this.#findRoot(projectId, rootId, { signal })
      return root === undefined ? undefined : this.#closureOf(root, signal)
    })
  }

  /** The same, where each object lies now: a plan names an object where it was, until a collection tells otherwise. */
  walkedClosureOf(projectId: string, rootId: string, signal: AbortSignal): Promise<Closure | undefined> {
    return this.#inCurrentView(async () => {
      const root = await this.#findRoot(projectId, rootId, { signal })
      return root === undefined ? undefined : this.#walks.closure(root, signal)
    })
  }

  async #closureOf(root: FoundRoot, signal: AbortSignal): Promise<Closure> {
    const plan = await this.#parts.plans.find(root.project, root.rootId, '', signal)
    const planned = plan?.tables.closure
    if (planned !== undefined && (await this.#liesInLayout(planned, root.project))) return planned
    return this.#walks.closure(root, signal)
  }

  /**
   * Whether none of its packs was merged, nor came from a merge after this view, as in the plan of a request that began
   * later: closures are compared place by place.
   */
  async #liesInLayout({ packs }: Closure, project: ProjectView): Promise<boolean> {
    for (const { sequence } of packs) {
      const { record } = await this.#parts.catalog.packOfAnyLayout(project, sequence)
      if (isRetired(record, project.layout) || record.activeAt > project.layout) return false
    }
    return true
  }

  async #findRoot(
    projectId: string,
    rootId: string,
    { signal, memory, isUpkeep }: ClosureOptions & Pick<Party, 'isUpkeep'>,
  ): Promise<FoundRoot | undefined> {
    const { records } = this.#parts
    const project = await viewProject(records, projectId, signal)
    if (project === undefined) return undefined
    const [location] = await locate(records, project, [Buffer.from(rootId, 'utf8')], signal)
    const party = partyOf(projectId, memory, isUpkeep)
    return location === undefined ? undefined : { project, rootId, location, party }
  }
}

function haveOutcome(
  closure: Closure | undefined,
  digest: string | undefined,
  isLast: boolean,
): HaveOutcome['outcome'] {
  if (closure === undefined) return 'unknown'
  if (digest !== undefined) return closure.digest === digest ? 'subtracted' : 'digest-mismatch'
  // Otherwise the client may have downloaded it while something was not visible yet, though its pack has a lower number.
  return isLast && isCompleteSinceRoot(closure) ? 'subtracted' : 'incomplete'
}

/** Names the subtracted closures, so that a plan is reused only for the same ones. */
function variantOf(closures: readonly Closure[]): string {
  if (closures.length === 0) return ''
  const digests = closures.map(({ packs }) => placesDigest(packs)).sort()
  return createHash('sha256').update(digests.join()).digest('hex').slice(0, 32)
}

function inTime<T>(promise: Promise<T>, waitMs: number, environment: Environment): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = environment.setTimer(waitMs, () => resolve(undefined))
    const settle = (value: T | undefined): void => {
      timer.cancel()
      resolve(value)
    }
    promise.then(settle, () => settle(undefined))
  })
}

/** Names everything that a delta answer depends on: what lies at a place of a pack never changes. */
function deltaKey({ project, rootId }: FoundRoot, closures: readonly Closure[]): string {
  return [...closures.map(({ packs }) => placesDigest(packs)), rootId, project.projectId].join('\0')
}

function partyOf(projectId: string, memory: MemoryLease | undefined, isUpkeep?: boolean): Party {
  return memory?.party ?? { principal: '', projectId, isUpkeep }
}

/** A walk that gets no memory is retried later. */
function onlyIfOverloaded(error: unknown): undefined {
  if (error instanceof StowageError && error.code === 'overloaded') return undefined
  throw error
}
