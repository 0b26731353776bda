import type { Environment, Timer } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import type { Domain } from '../domain/domain.ts'
import { isFinal, type RunRecord } from '../domain/run-record.ts'
import type { RunHandle, StopReason } from '../domain/executor.ts'

export interface WatchedRun {
  readonly domain: Domain
  readonly projectId: string
  readonly run: RunRecord
  readonly handle: RunHandle
}

/** Beats in a lease. */
const RENEWALS_IN_LEASE = 3
/** How long an executor may continue when its run has its final status. */
const LINGER_MS = 10_000

/** Looks after a run in this process: renews its lease, and tells its function when to stop. */
export class RunWatch {
  readonly #watched: WatchedRun
  readonly #environment: Environment
  readonly #beatIntervalMs: number
  readonly #limit: Timer
  readonly #unlisten: () => void
  #beat: Timer
  #lingering: Timer | undefined
  #isOver = false

  constructor(watched: WatchedRun) {
    const { domain, projectId, run, handle } = watched
    const { leaseMs, runMsMax } = domain.options.times
    this.#watched = watched
    this.#environment = domain.options.environment
    this.#beatIntervalMs = Math.ceil(leaseMs / RENEWALS_IN_LEASE)
    this.#beat = this.#nextBeat()
    this.#limit = this.#environment.setTimer(runMsMax, () => {
      void domain.reports
        .end(projectId, run, 'timeout', `the run took longer than ${runMsMax} ms`)
        .catch(() => undefined)
      handle.cancel('timeout')
    })
    this.#unlisten = domain.signals.listen({ projectId, runId: run.id }, () => void this.#look())
    // Events since the start were reported to nobody.
    void this.#look()
  }

  end(): void {
    this.#isOver = true
    this.#beat.cancel()
    this.#limit.cancel()
    this.#lingering?.cancel()
    this.#unlisten()
  }

  #nextBeat(): Timer {
    return this.#environment.setTimer(this.#beatIntervalMs, () => {
      this.#beat = this.#nextBeat()
      void this.#renew()
    })
  }

  async #renew(): Promise<void> {
    const { domain, projectId, run } = this.#watched
    await this.#heed(() => domain.reports.renewLease(projectId, run.id, run.attempt))
  }

  async #look(): Promise<void> {
    const { domain, projectId, run } = this.#watched
    await this.#heed(async () => (await domain.changes.found(projectId, run.id)).stored.value.status)
  }

  /** A brief failure of the storage stops no run. */
  async #heed(statusOf: () => Promise<RunRecord['status']>): Promise<void> {
    try {
      const status = await statusOf()
      if (status === 'canceled' || status === 'timeout') this.#stop(status)
      else if (isFinal(status) && !this.#isOver)
        this.#lingering ??= this.#environment.setTimer(LINGER_MS, () => this.#stop('ended'))
    } catch (error) {
      if (isGone(error) || (error instanceof StowageError && error.code === 'conflict')) this.#stop('lost')
    }
  }

  #stop(reason: StopReason): void {
    if (!this.#isOver) this.#watched.handle.cancel(reason)
  }
}

/** The run, or its project, was removed meanwhile. */
export function isGone(error: unknown): boolean {
  return error instanceof StowageError && error.code === 'not_found'
}
