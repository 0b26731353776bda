import type { ActiveRuns } from './domain/active-runs.ts'
import type { Domain } from './domain/domain.ts'
import { isOverdue } from './queue.ts'

export interface SweepParts {
  readonly domain: Domain
  readonly active: ActiveRuns
  readonly attemptsMax: number
  /** Whether this process has the run in its hands: then it is late with the lease, and the run is not lost. */
  readonly isHeldHere: (runId: string) => boolean
}

/** Ends runs that were lost. One that was taken up and never reported may be taken up again, within `attemptsMax`. */
export async function endLostRuns({ domain, active, attemptsMax, isHeldHere }: SweepParts, signal: AbortSignal): Promise<void> {
  for await (const { projectId, run } of active.all(signal)) {
    signal.throwIfAborted()
    const overdue = isOverdue(run, domain.store.clock.now())
    if (overdue === undefined || (overdue === 'lease' && (isHeldHere(run.id) || (run.status === 'pending' && run.attempt < attemptsMax)))) continue
    await domain.changes.change(projectId, run.id, (current) => {
      const why = isOverdue(current, domain.store.clock.now())
      if (why === undefined) return undefined
      const { leaseMs, runMsMax } = domain.options.times
      const message = why === 'lease' ? `nothing was heard of the run for ${leaseMs} ms: it was lost` : `the run took longer than ${runMsMax} ms`
      return { run: { status: 'timeout', message } }
    })
  }
}
