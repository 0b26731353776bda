import { quoted } from '../../object/id.ts'
import type { ActiveRuns } from '../domain/active-runs.ts'
import type { Domain } from '../domain/domain.ts'
import { mayStart, type RunRecord } from '../domain/run-record.ts'
import type { Overdue, RunSightings } from '../runner/run-sightings.ts'

export interface SweepParts {
  readonly domain: Domain
  readonly active: ActiveRuns
  readonly sightings: RunSightings
  readonly attemptsMax: number
  /** Runs at a time in this process. */
  readonly concurrency: number
  /** Whether this process runs it: then its lease is merely late, and the run is not lost. */
  readonly isHeldHere: (runId: string) => boolean
}

/**
 * Ends runs that were lost, and those that nothing started in time. A run that was started and never reported may be
 * started again, within `attemptsMax`.
 */
export async function endLostRuns(parts: SweepParts, signal: AbortSignal): Promise<void> {
  const { domain, active, sightings, attemptsMax, isHeldHere } = parts
  const epoch = await domain.options.epochs.current()
  const found = new Set<string>()
  for await (const { projectId, run } of active.all(signal)) {
    signal.throwIfAborted()
    found.add(run.id)
    const overdue = sightings.overdue(run, epoch)
    if (overdue === undefined || (overdue === 'lease' && (isHeldHere(run.id) || mayStart(run, attemptsMax)))) continue
    await domain.changes.change(projectId, run.id, (current) => {
      const why = sightings.overdue(current, epoch)
      return why === undefined ? undefined : { run: { status: 'timeout', message: wordsOn(why, current, parts) } }
    })
  }
  sightings.keepOnly(found)
}

function wordsOn(
  why: Overdue,
  { functionId, triggeredBy }: RunRecord,
  {
    domain: {
      options: { times, functions },
    },
    concurrency,
  }: SweepParts,
): string {
  if (why === 'lease' && triggeredBy.kind === 'external')
    return `the machine on which a person ran the function was silent for ${times.leaseMs} ms: the run was lost`
  if (why === 'lease') return `the run was silent for ${times.leaseMs} ms: it was lost`
  if (why === 'deadline') return `the run took longer than ${times.runMsMax} ms`
  const waited = `the run waited for ${spanOf(times.pendingMsMax)}, and no server took it up`
  if (functions.find(functionId) === undefined)
    return `${waited}: its function ${quoted(functionId)} is registered at none that was there; register it, then run it again`
  return `${waited}: there was none with the function ${quoted(functionId)}, or other runs had all its places (${concurrency} at a time here); run it again`
}

const UNITS: readonly (readonly [string, number])[] = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
]

/** In the largest unit that it is a multiple of. */
function spanOf(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, one]) => ms % one === 0) ?? ['ms', 1]
  return `${ms / unitMs} ${unit}`
}
