import { Semaphore } from '../../async/semaphore.ts'
import { SingleFlight } from '../../async/single-flight.ts'
import type { Party } from '../../memory/memory-budget.ts'
import type { ObjectLocation } from '../records/locator.ts'
import { OutdatedViewError } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { firstPending } from '../records/projects.ts'
import type { Closure } from './closure.ts'
import { type WalkContext, withWalk } from './with-walk.ts'

/** A walk that packs were moved away from begins again. */
const WALKS_MAX = 3
/** Each holds the tables of the packs that it walks through. */
const WALKS_AT_ONCE = 2

export interface FoundRoot {
  readonly project: ProjectView
  readonly rootId: string
  readonly location: ObjectLocation
  /** The first caller. */
  readonly party: Party
}

/** A closure with the view in which it names packs. */
export interface WalkedRoot {
  readonly closure: Closure
  readonly project: ProjectView
}

/** Walks, a few at a time, and one for all who ask for the same root. */
export class SharedWalks {
  readonly #parts: WalkContext
  readonly #findAgain: (projectId: string, rootId: string, signal: AbortSignal) => Promise<FoundRoot | undefined>
  readonly #walks = new SingleFlight<Closure>()
  readonly #walking = new Semaphore(WALKS_AT_ONCE)

  constructor(
    parts: WalkContext,
    findAgain: (projectId: string, rootId: string, signal: AbortSignal) => Promise<FoundRoot | undefined>,
  ) {
    this.#parts = parts
    this.#findAgain = findAgain
  }

  /**
   * The view of the root tells one layout, so that the closure is one moment's, however packs are merged meanwhile: the
   * packs of before stay for a day. A walk that is older than that begins again.
   */
  async walk(root: FoundRoot, signal: AbortSignal): Promise<WalkedRoot> {
    for (let [attempt, current] = [1, root]; ; attempt++) {
      try {
        return { closure: await this.#walkOnce(current, signal), project: current.project }
      } catch (error) {
        if (!(error instanceof OutdatedViewError) || attempt === WALKS_MAX) throw error
        const found = await this.#findAgain(root.project.projectId, root.rootId, signal)
        if (found === undefined) throw error
        current = { ...found, party: root.party }
      }
    }
  }

  /**
   * A walk that began while an upload was writing its ids may have missed ids that were acknowledged since, so only its
   * first caller uses it.
   */
  async #walkOnce({ project, rootId, location, party }: FoundRoot, signal: AbortSignal): Promise<Closure> {
    const pending = await firstPending(this.#parts.records, project)
    const sequence = Math.min(pending ?? project.sequence, project.sequence)
    const walk = (signal: AbortSignal): Promise<Closure> =>
      this.#walking.run(signal, async () => {
        const closure = await withWalk(this.#parts, project, { signal, party }, (lent) => lent.from(location))
        return { ...closure, sequence }
      })
    if (pending !== undefined) return walk(signal)
    const { projectId, generation, sequence: before, layout } = project
    return this.#walks.run(`${projectId}\0${generation}\0${before}\0${layout}\0${rootId}`, signal, walk)
  }
}
