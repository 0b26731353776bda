import { isServiceError } from '../../errors.ts'
import { Semaphore } from '../../async/semaphore.ts'
import { SingleFlight } from '../../async/single-flight.ts'
import type { Party } from '../../memory/memory-budget.ts'
import type { ObjectLocation } from '../records/locator.ts'
import { OutdatedViewError } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { firstPending } from '../records/projects.ts'
import type { Closure } from './closure.ts'
import { WalkPrecedence } from './walk-precedence.ts'
import { type WalkContext, withWalk } from './with-walk.ts'

/** Each holds the tables of the packs that it walks through. Upkeep has one more, which gives way to these. */
const WALKS_AT_ONCE = 2

export interface FoundRoot {
  readonly project: ProjectView
  readonly rootId: string
  readonly location: ObjectLocation
  /** The first caller. */
  readonly party: Party
}

/** Walks, a few at a time, and one for all who ask for the same root. */
export class SharedWalks {
  readonly #parts: WalkContext
  readonly #walks = new SingleFlight<Closure>()
  readonly #walking = new Semaphore(WALKS_AT_ONCE)
  readonly #precedence = new WalkPrecedence()
  /** Each makes a walk that upkeep has begun one of requests. */
  readonly #joins = new Map<string, () => void>()

  constructor(parts: WalkContext) {
    this.#parts = parts
  }

  /**
   * The closure in the root's view, which has one layout: merges do not affect it, since the packs that they replace
   * stay for a day. Rejects with `OutdatedViewError` if the view is older than that.
   *
   * A walk that began while an upload was writing its ids may have missed ids that were acknowledged since, so only its
   * first caller uses it. If a walk that others began ends because their memory is needed, the caller walks again,
   * once.
   */
  async closure(root: FoundRoot, signal: AbortSignal): Promise<Closure> {
    const { project, rootId, party } = root
    const pending = await firstPending(this.#parts.records, project)
    const sequence = Math.min(pending ?? project.sequence, project.sequence)
    const { projectId, generation, sequence: before, layout } = project
    const key = `${projectId}\0${generation}\0${before}\0${layout}\0${rootId}`
    let isOwn = false
    const walk = async (signal: AbortSignal): Promise<Closure> => {
      isOwn = true
      const closure =
        party.isUpkeep === true ? this.#walkOfUpkeep(root, key, signal) : this.#walkOfRequest(root, signal)
      return { ...(await closure), sequence }
    }
    if (pending !== undefined) return walk(signal)
    if (party.isUpkeep !== true) this.#joins.get(key)?.()
    try {
      return await this.#walks.run(key, signal, walk)
    } catch (error) {
      const isForMemory = isServiceError(error) && error.code === 'overloaded' && !(error instanceof OutdatedViewError)
      if (isOwn || !isForMemory) throw error
      return await this.#walks.run(key, signal, walk)
    }
  }

  #walkOfRequest(root: FoundRoot, signal: AbortSignal): Promise<Closure> {
    return this.#precedence.ofRequest(this.#walking.run(signal, () => this.#walk(root, signal)))
  }

  async #walkOfUpkeep(root: FoundRoot, key: string, signal: AbortSignal): Promise<Closure> {
    const { walking, join } = this.#precedence.ofUpkeep((own) => this.#walk(root, own), signal)
    this.#joins.set(key, join)
    try {
      return await walking
    } finally {
      if (this.#joins.get(key) === join) this.#joins.delete(key)
    }
  }

  #walk({ project, location, party }: FoundRoot, signal: AbortSignal): Promise<Closure> {
    return withWalk(this.#parts, project, { signal, party }, (walk) => walk.from(location))
  }
}
