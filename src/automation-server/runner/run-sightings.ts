import type { Environment } from '../../environment.ts'
import type { StoreEpoch, StoreEpochs } from '../../object/epochs.ts'
import type { RunTimes } from '../domain/options.ts'
import { isFinal, isWaiting, type RunRecord } from '../domain/run-record.ts'

/** Why a run may be lost: nothing started it in time, it is past its time, or its lease stands still. */
export type Overdue = 'age' | 'deadline' | 'lease'

interface Sighting {
  readonly attempt: number
  readonly attemptSinceMs: number
  readonly leaseBeat: number | null
  readonly beatSinceMs: number
}

interface Parts {
  readonly environment: Pick<Environment, 'monotonicMs'>
  readonly epochs: Pick<StoreEpochs, 'epochMs'>
  readonly times: Pick<RunTimes, 'leaseMs' | 'pendingMsMax' | 'runMsMax'>
}

/**
 * How long this server has seen each run stand still, by its own monotonic clock. Clocks of servers differ, so no server
 * compares a time that another one wrote: a lease is over when its number has not risen for its whole length.
 */
export class RunSightings {
  readonly #parts: Parts
  #seen = new Map<string, Sighting>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * To be asked again and again. With `epoch`, time counts as well that the run waited before this server came; not
   * time in which no server was there.
   */
  overdue(run: RunRecord, epoch?: StoreEpoch): Overdue | undefined {
    if (isFinal(run.status)) return undefined
    const { environment, times } = this.#parts
    const nowMs = environment.monotonicMs()
    const { attemptSinceMs, beatSinceMs } = this.#note(run, nowMs)
    if (isWaiting(run)) {
      const isOld = nowMs - attemptSinceMs >= times.pendingMsMax
      return isOld || (epoch !== undefined && this.#isOldAt(run, epoch)) ? 'age' : undefined
    }
    if (nowMs - attemptSinceMs >= times.runMsMax) return 'deadline'
    return nowMs - beatSinceMs >= times.leaseMs ? 'lease' : undefined
  }

  /** Forgets the runs that have ended. */
  keepOnly(runIds: ReadonlySet<string>): void {
    for (const runId of this.#seen.keys()) if (!runIds.has(runId)) this.#seen.delete(runId)
  }

  /** The run may have come at the end of its epoch. */
  #isOldAt({ createdEpoch }: RunRecord, { number }: StoreEpoch): boolean {
    const { times, epochs } = this.#parts
    return number - createdEpoch > Math.ceil(times.pendingMsMax / epochs.epochMs)
  }

  #note({ id, attempt, leaseBeat }: RunRecord, nowMs: number): Sighting {
    const seen = this.#seen.get(id)
    const isSameAttempt = seen?.attempt === attempt
    if (isSameAttempt && seen.leaseBeat === leaseBeat) return seen
    const sighting = {
      attempt,
      attemptSinceMs: isSameAttempt ? seen.attemptSinceMs : nowMs,
      leaseBeat,
      beatSinceMs: nowMs,
    }
    this.#seen.set(id, sighting)
    return sighting
  }
}
