import { linkedAbort } from '../../async/abort.ts'
import { KeyedMutex } from '../../async/keyed-mutex.ts'
import { pauseBeforeRetry } from '../../async/backoff.ts'
import { StowageError } from '../../errors.ts'
import type {
  ChosenReport,
  CollectionCounts,
  CollectionProgress,
  CollectOptions,
  GraphCollector,
  ObjectAmount,
  ReadRoots,
  UnreferencedOptions,
  UnreferencedPage,
} from '../../object/collection.ts'
import type { StoreEpoch } from '../../object/epochs.ts'
import type { SignalOptions } from '../../object/graph-store.ts'
import type { GraphRoot } from '../../object/roots.ts'
import { OutdatedViewError } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { viewProject } from '../records/projects.ts'
import { readTotals } from '../records/totals.ts'
import { collectChosen } from './chosen.ts'
import { Fence, LayoutChangedError, ProjectGoneError } from './fence.ts'
import { mark } from './mark.ts'
import type { CollectParts } from './parts.ts'
import { restoreCondemned, reviveBelow } from './revival.ts'
import { Sweep, Tallies } from './sweep.ts'
import { UnreferencedLists } from './unreferenced.ts'

/** Enough for pauses that are longer than a small collection: of two that begin at once, each ends the other. */
const ATTEMPTS_MAX = 8

/** Frees what no root reaches, in two steps: what is condemned can be restored until it is freed. */
export class PackCollector implements GraphCollector {
  readonly #parts: CollectParts
  readonly #unreferenced: UnreferencedLists
  /** Two collections of a project in one process would only be in each other's way. */
  readonly #running = new KeyedMutex()

  constructor(parts: CollectParts) {
    this.#parts = parts
    this.#unreferenced = new UnreferencedLists(parts)
  }

  collect(projectId: string, readRoots: ReadRoots, options: CollectOptions): Promise<CollectionCounts | undefined> {
    const tallies = new Tallies()
    return this.#whileLayoutStands(projectId, options.signal, async (project, signal) => {
      tallies.beginAgain({ dryRun: options.dryRun ?? false })
      return this.#collect(project, readRoots, { ...options, signal }, tallies)
    })
  }

  condemn(
    projectId: string,
    ids: readonly string[],
    readRoots: ReadRoots,
    options: Pick<CollectOptions, 'signal' | 'olderThanEpochs' | 'dryRun' | 'onProgress'>,
  ): Promise<ChosenReport | undefined> {
    const tallies = new Tallies()
    return this.#whileLayoutStands(projectId, options.signal, async (project, signal) => {
      tallies.beginAgain({ dryRun: options.dryRun ?? false })
      const { number: epoch } = await this.#parts.epochs.current()
      const roots = await readRoots()
      const aging = { epoch, olderThanEpochs: atLeastOne(options.olderThanEpochs) }
      return collectChosen(this.#parts, project, { ids, roots, aging, tallies, options: { ...options, signal } })
    })
  }

  restore(
    projectId: string,
    options: Pick<CollectOptions, 'signal' | 'onProgress'>,
  ): Promise<ObjectAmount | undefined> {
    return this.#whileLayoutStands(projectId, options.signal, (project, signal) =>
      restoreCondemned(this.#parts, project, { ...options, signal }),
    )
  }

  unreferenced(
    projectId: string,
    readRoots: ReadRoots,
    options: UnreferencedOptions,
  ): Promise<UnreferencedPage | undefined> {
    return this.#unreferenced.page(projectId, readRoots, options)
  }

  revive(projectId: string, rootObjectId: string, { signal }: SignalOptions): Promise<StoreEpoch> {
    return reviveBelow(this.#parts, projectId, rootObjectId, signal)
  }

  /** Repeats the work when another server raised the layout. `undefined` if the project does not exist. */
  async #whileLayoutStands<T>(
    projectId: string,
    callerSignal: AbortSignal,
    work: (project: ProjectView, signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const { controller, unlink } = linkedAbort(callerSignal, this.#parts.closing)
    try {
      return await this.#running.run(projectId, () => this.#attempts(projectId, controller.signal, work))
    } finally {
      unlink()
    }
  }

  async #attempts<T>(
    projectId: string,
    signal: AbortSignal,
    work: (project: ProjectView, signal: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    const { records, environment, finishMerge } = this.#parts
    for (let attempt = 0; ; attempt++) {
      signal.throwIfAborted()
      const found = await viewProject(records, projectId, signal)
      if (found !== undefined) await finishMerge(found, signal)
      const project = found && (await viewProject(records, projectId, signal))
      if (project === undefined) return undefined
      try {
        return await work(project, signal)
      } catch (error) {
        if (error instanceof ProjectGoneError) return undefined
        const hasChanged = error instanceof LayoutChangedError || error instanceof OutdatedViewError
        if (!hasChanged || attempt + 1 >= ATTEMPTS_MAX) throw error
        await pauseBeforeRetry(attempt, environment)
      }
    }
  }

  async #collect(
    project: ProjectView,
    readRoots: ReadRoots,
    options: CollectOptions,
    tallies: Tallies,
  ): Promise<CollectionCounts> {
    const { epochs } = this.#parts
    const { signal, dryRun = false, onProgress } = options
    const { number: epoch } = await epochs.current()
    const aging = { epoch, olderThanEpochs: atLeastOne(options.olderThanEpochs) }
    const roots = await readRoots()
    const { totals } = await readTotals(this.#parts, project)
    const tell = (progress: Pick<CollectionProgress, 'phase' | 'objects'>): void =>
      onProgress?.({ ...progress, objectsTotal: Math.max(totals.objects, progress.objects) })
    tell({ phase: 'marking', objects: 0 })
    const damaged = await this.#markAndSweep(project, roots, tallies, {
      ...aging,
      undoEpochs: atLeastOne(options.undoEpochs),
      signal,
      dryRun,
      onProgress: tell,
    })
    return {
      dryRun,
      skipped: damaged ? 'damaged' : roots.length === 0 ? 'noRoots' : null,
      held: tallies.held.amount,
      young: tallies.young.amount,
      condemned: tallies.condemned.amount,
      freed: tallies.freed.amount,
      replacedCopies: tallies.replacedCopies.amount,
      restorable: tallies.restorable.amount,
      revived: tallies.revived.amount,
    }
  }

  /** Whether something cannot be read: then nothing, or nothing more, is collected. */
  async #markAndSweep(
    project: ProjectView,
    roots: readonly GraphRoot[],
    tallies: Tallies,
    terms: Omit<ConstructorParameters<typeof Sweep>[2], 'marked'>,
  ): Promise<boolean> {
    const { budget } = this.#parts
    const memory = budget.open({ signal: terms.signal, party: { principal: '', projectId: project.projectId } })
    try {
      const fence = await (terms.dryRun ? Fence.ofDryRun(this.#parts, project) : Fence.of(this.#parts, project))
      const marked = await mark(this.#parts, project, roots, { signal: terms.signal, aging: terms, memory })
      await new Sweep(this.#parts, project, { ...terms, marked }, { fence, tallies, memory: memory.part() }).run()
      return false
    } catch (error) {
      if (error instanceof StowageError && error.code === 'corrupt_data') return true
      throw error
    } finally {
      memory.release()
    }
  }
}

function atLeastOne(epochs: number): number {
  return Math.max(1, Math.ceil(epochs))
}
