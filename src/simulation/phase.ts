import { Violation } from './oracle.ts'
import type { Scheduler } from './scheduler.ts'

/** What a phase of a run needs to know of its world. */
export interface PhaseWorld {
  readonly scheduler: Scheduler
  readonly violation: string | undefined
  broken(error: unknown): void
}

/** Makes steps until all of the work is done. Throws `Violation` if something is broken, or nothing goes on any more. */
export async function runPhase(world: PhaseWorld, work: readonly Promise<void>[]): Promise<void> {
  let left = work.length
  for (const one of work) one.catch((error: unknown) => world.broken(error)).finally(() => left--)
  const isOver = await world.scheduler.runUntil(() => left === 0 || world.violation !== undefined)
  if (!isOver) throw new Violation(`nothing goes on any more, and ${left} operations have not ended`)
  if (world.violation !== undefined) throw new Violation(world.violation)
}
