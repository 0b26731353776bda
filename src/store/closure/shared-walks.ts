import { isServiceError } from '../../errors.ts'
import { orAborted } from '../../async/abort.ts'
import { Semaphore } from '../../async/semaphore.ts'
import { SingleFlight } from '../../async/single-flight.ts'
import type { Party } from '../../memory/memory-budget.ts'
import type { ObjectLocation } from '../records/locator.ts'
import { OutdatedViewError } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import { firstPending } from '../records/projects.ts'
import type { Closure } from './closure.ts'
import { type WalkContext, withWalk } from './with-walk.ts'

/** Each holds the tables of the packs that it walks through. */
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
  /** The ends of those that requests wait for. */
  readonly #ofRequests = new Set<Promise<void>>()

  constructor(parts: WalkContext) {
    this.#parts = parts
  }

  /** Waits for the walks that requests wait for now: upkeep begins later, since it would slow them down. */
  async settled(signal: AbortSignal): Promise<void> {
    await orAborted(Promise.all(this.#ofRequests), signal)
  }

  /**
   * The closure in the root's view, which has one layout: merges do not affect it, since the packs that they replace
   * stay for a day. Rejects with `OutdatedViewError` if the view is older than that.
   *
   * A walk that began while an upload was writing its ids may have missed ids that were acknowledged since, so only its
   * first caller uses it. If a walk that others began ends because their memory is needed, the caller walks again,
   * once.
   */
  async closure({ project, rootId, location, party }: FoundRoot, signal: AbortSignal): Promise<Closure> {
    const pending = await firstPending(this.#parts.records, project)
    const sequence = Math.min(pending ?? project.sequence, project.sequence)
    let isOwn = false
    const walk = (signal: AbortSignal): Promise<Closure> => {
      isOwn = true
      const walking = this.#walking.run(signal, async () => {
        const closure = await withWalk(this.#parts, project, { signal, party }, (lent) => lent.from(location))
        return { ...closure, sequence }
      })
      if (party.isUpkeep !== true) this.#note(walking)
      return walking
    }
    if (pending !== undefined) return walk(signal)
    const { projectId, generation, sequence: before, layout } = project
    const key = `${projectId}\0${generation}\0${before}\0${layout}\0${rootId}`
    try {
      return await this.#walks.run(key, signal, walk)
    } catch (error) {
      const isForMemory = isServiceError(error) && error.code === 'overloaded' && !(error instanceof OutdatedViewError)
      if (isOwn || !isForMemory) throw error
      return await this.#walks.run(key, signal, walk)
    }
  }

  #note(walking: Promise<Closure>): void {
    const forget = (): void => void this.#ofRequests.delete(ended)
    const ended = walking.then(forget, forget)
    this.#ofRequests.add(ended)
  }
}
