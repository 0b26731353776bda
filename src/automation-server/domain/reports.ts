import { type LogLine, canTransition, type RunReport, type RunStatus } from '../../automation/author/run-data.ts'
import { StowageError } from '../../errors.ts'
import type { Entry } from '../../storage/backend.ts'
import type { ProjectScope } from '../records/store.ts'
import { finalResultEntries } from './final-result.ts'
import type { Logs } from './logs.ts'
import type { DomainParts } from './parts.ts'
import type { PreparedAnnotations, Annotations } from './annotations.ts'
import { checkAttempt, type RunChange, type RunChanges, describeStatus } from './run-changes.ts'
import { isFinal, type RunRecord } from './run-record.ts'

interface Parts extends Pick<DomainParts, 'store'> {
  readonly changes: RunChanges
  readonly annotations: Annotations
  readonly logs: Logs
}

export interface LeaseAnswer {
  readonly status: RunStatus
  /** Whether the run must stop, because nothing more from it is accepted. */
  readonly canceled: boolean
}

/** Accepts the reports of runs. */
export class Reports {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Accepts one report (see `readReport`), whole or not at all. A sequence number that was accepted before, and a
   * repeated final report, change nothing. Throws `conflict` for a status that may not follow, for any report after the
   * final one and from an attempt that was given up, `invalid_request`, `annotations_too_large`.
   */
  async take(projectId: string, runId: string, report: RunReport, attempt: number): Promise<void> {
    const { changes } = this.#parts
    const { scope, stored } = await changes.found(projectId, runId)
    checkAttempt(stored.value, attempt)
    if (isTaken(stored.value, report)) return
    const annotations = await this.#prepared(scope, stored.value, report)
    let isUsed = false
    try {
      await changes.change(projectId, runId, (run, scope) => {
        isUsed = false
        checkAttempt(run, attempt)
        if (isTaken(run, report)) return undefined
        isUsed = true
        return this.#change(scope, run, report, annotations)
      })
    } catch (error) {
      // After a storage error it is unknown whether the commit happened: the sweep finds out.
      if (error instanceof StowageError && !error.isRetryable) isUsed = false
      throw error
    } finally {
      if (annotations !== undefined && !isUsed) await this.#parts.annotations.discard(annotations)
    }
  }

  /**
   * Read the status of the run, for the run itself. It renews nothing: the lease is held by the server that sees to the
   * run, so that a function whose server has died does not go on by itself. An external run renews its own lease by
   * this.
   */
  async lease(projectId: string, runId: string, attempt: number): Promise<LeaseAnswer> {
    const { status, triggeredBy } = (await this.#parts.changes.found(projectId, runId)).stored.value
    const isRenewed = triggeredBy.kind === 'external' && !isFinal(status)
    const now = isRenewed ? await this.renewLease(projectId, runId, attempt) : status
    return { status: now, canceled: isFinal(now) }
  }

  /** The runner is alive. Throws `conflict` for an attempt that was given up. */
  async renewLease(projectId: string, runId: string, attempt: number): Promise<RunStatus> {
    const { status } = await this.#parts.changes.change(projectId, runId, (run) => {
      checkAttempt(run, attempt)
      return isFinal(run.status) ? undefined : { run: { leaseBeat: (run.leaseBeat ?? 0) + 1 } }
    })
    return status
  }

  /**
   * Log lines from outside the run: its runner, which sees the output of its process. They may arrive after the run has
   * ended.
   */
  async addLogs(projectId: string, runId: string, lines: readonly LogLine[]): Promise<void> {
    const { changes, logs } = this.#parts
    await changes.change(projectId, runId, (run, scope) => logs.added(scope, run, lines))
  }

  /** The server's own report of how an attempt ended. A run that has ended, or was started anew, stays as it is. */
  async end(
    projectId: string,
    { id, attempt }: Pick<RunRecord, 'id' | 'attempt'>,
    status: 'exception' | 'timeout',
    message: string,
  ): Promise<void> {
    await this.#parts.changes.change(projectId, id, (run) =>
      isFinal(run.status) || run.attempt !== attempt ? undefined : { run: { status, message } },
    )
  }

  async #prepared(
    scope: ProjectScope,
    run: RunRecord,
    { annotations }: RunReport,
  ): Promise<PreparedAnnotations | undefined> {
    return annotations === undefined || annotations.length === 0
      ? undefined
      : this.#parts.annotations.prepare(scope, run, annotations)
  }

  #change(
    scope: ProjectScope,
    run: RunRecord,
    report: RunReport,
    prepared: PreparedAnnotations | undefined,
  ): RunChange {
    const { store, annotations, logs } = this.#parts
    const put: Entry[] = []
    let change: Partial<RunRecord> = { sequence: report.sequence }
    if (report.status !== undefined) change = { ...change, status: report.status, message: report.message ?? null }
    if (report.progress !== undefined)
      change = { ...change, progress: { fraction: report.progress.fraction, message: report.progress.message ?? null } }
    if (report.result !== undefined) {
      const final = finalResultEntries(store, scope, run.id, report.result)
      put.push(...final)
      change = { ...change, finalParts: final.length }
    }
    if (prepared !== undefined) {
      const added = annotations.added(scope, run, prepared)
      put.push(...added.put)
      change = { ...change, ...added.run }
    }
    if (report.logs !== undefined && report.logs.length > 0) {
      const added = logs.added(scope, run, report.logs)
      put.push(...added.put)
      change = { ...change, ...added.run }
    }
    return { run: change, put }
  }
}

/** Whether a report changes nothing any more. Throws `conflict` if it contradicts the current state. */
function isTaken(run: RunRecord, { sequence, status, message }: RunReport): boolean {
  if (status !== undefined && isFinal(run.status) && status === run.status && (message ?? null) === run.message)
    return true
  if (sequence <= run.sequence && (status === undefined || !isFinal(status))) return true
  if (isFinal(run.status))
    throw new StowageError('conflict', `the run takes no more reports: ${describeStatus(run.status)}`)
  if (sequence <= run.sequence)
    throw new StowageError(
      'conflict',
      `a report with the sequence ${sequence} was accepted before, and its status was not ${status}`,
    )
  if (status !== undefined && status !== run.status && !canTransition(run.status, status))
    throw new StowageError('conflict', `the run cannot become ${status}: ${describeStatus(run.status)}`)
  return false
}
