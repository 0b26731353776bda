import { linkedAbort } from '../../async/abort.ts'
import type { MemoryBudget, Party } from '../../memory/memory-budget.ts'
import type { ProjectView } from '../records/project-view.ts'
import { ClosureWalk } from './closure-walk.ts'
import { WalkMemory } from './walk-memory.ts'
import type { WalkParts } from './walked-pack.ts'

export interface WalkContext extends WalkParts {
  readonly budget: MemoryBudget
}

/**
 * Lends a walk to `work`, with memory that is given back when `work` settles. Rejects with `overloaded` when others
 * need the memory more, and with `not_found` when the project is removed meanwhile.
 */
export async function withWalk<T>(
  { budget, ...parts }: WalkContext,
  project: ProjectView,
  { signal, party }: { readonly signal: AbortSignal; readonly party: Party },
  work: (walk: ClosureWalk) => Promise<T>,
): Promise<T> {
  const { controller, unlink } = linkedAbort(signal)
  const own = controller.signal
  const memory = new WalkMemory(budget, { signal: own, party, revoke: (reason) => controller.abort(reason) })
  try {
    return await work(new ClosureWalk(parts, project, { signal: own, memory }))
  } catch (error) {
    throw await parts.catalog.reasonOf(error, project)
  } finally {
    memory.release()
    unlink()
  }
}
