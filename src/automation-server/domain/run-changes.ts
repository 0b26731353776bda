import type { RunStatus } from '../../automation/author/run-data.ts'
import { StowageError } from '../../errors.ts'
import type { Entry, Expectation } from '../../storage/backend.ts'
import { generationText, globalKey, projectKey } from '../records/keys.ts'
import { type AutomationStore, expectSame, type ProjectScope, type Stored } from '../records/store.ts'
import { checkResourceId, notFoundError } from '../schemas/checks.ts'
import { isFinal, isWaiting, type RunRecord } from './run-record.ts'
import type { RunSignals } from './run-signals.ts'

export interface RunChange {
  readonly run: Partial<RunRecord>
  /** Records that belong to the change. */
  readonly put?: readonly Entry[]
  readonly expect?: readonly Expectation[]
}

/** Examines a run and returns its change, or that it stays. May be called again. */
export type DecideChange = (
  run: RunRecord,
  scope: ProjectScope,
) => RunChange | undefined | Promise<RunChange | undefined>

/**
 * The one place where runs change: compare-and-set on the run's record, with all related changes in the same commit.
 */
export class RunChanges {
  readonly #store: AutomationStore
  readonly #signals: RunSignals

  constructor({ store, signals }: { readonly store: AutomationStore; readonly signals: RunSignals }) {
    this.#store = store
    this.#signals = signals
  }

  /** Throws `not_found`. */
  async found(
    projectId: string,
    runId: string,
  ): Promise<{ readonly scope: ProjectScope; readonly stored: Stored<RunRecord> }> {
    checkResourceId(runId, 'run')
    const scope = await this.#store.scope(projectId)
    const stored = scope === undefined ? undefined : await this.#store.get<RunRecord>(scope, 'run', runId)
    if (scope === undefined || stored === undefined) throw notFoundError('run', runId)
    return { scope, stored }
  }

  /** The run after the change. Throws `not_found`, and the errors of `decide`. */
  async change(projectId: string, runId: string, decide: DecideChange): Promise<RunRecord> {
    const store = this.#store
    const record = await store.retried(async () => {
      const { scope, stored } = await this.found(projectId, runId)
      const change = await decide(stored.value, scope)
      if (change === undefined) return stored.value
      const record = this.#changed(stored.value, change.run)
      const put = [store.entry(stored.key, record), ...(change.put ?? [])]
      const remove = [
        ...(isFinal(record.status) ? [activeKey(scope, runId)] : []),
        ...(isWaiting(stored.value) && !isWaiting(record) ? [waitingKey(scope, record)] : []),
      ]
      return (await store.commit(scope, { put, remove, expect: [expectSame(stored), ...(change.expect ?? [])] }))
        ? record
        : undefined
    })
    this.#signals.changed(runId)
    return record
  }

  #changed(before: RunRecord, change: Partial<RunRecord>): RunRecord {
    const after = { ...before, ...change, revision: before.revision + 1 }
    return isFinal(after.status) && !isFinal(before.status)
      ? { ...after, endedAt: this.#store.nowText(), leaseBeat: null }
      : after
  }
}

/** Marks a run that is not final, so that all of them are found without reading every run. */
export function activeKey({ projectId, generation }: ProjectScope, runId: string): Uint8Array {
  return globalKey('active', runId, projectId, generationText(generation))
}

/** Marks a run that nothing has started yet, beside the others of its automation. */
export function waitingKey(
  scope: ProjectScope,
  { automationId, id }: Pick<RunRecord, 'automationId' | 'id'>,
): Uint8Array {
  return projectKey(scope, 'waiting', automationId, id)
}

/** Throws `conflict` for a report of an attempt that was given up as lost: the run has another attempt since. */
export function checkAttempt(run: Pick<RunRecord, 'attempt'>, attempt: number): void {
  if (run.attempt !== attempt)
    throw new StowageError(
      'conflict',
      'the run was lost and started again; reports of this attempt are no longer accepted',
    )
}

export function describeStatus(status: RunStatus): string {
  return isFinal(status) ? `it has ended (${status})` : `it is ${status}`
}
