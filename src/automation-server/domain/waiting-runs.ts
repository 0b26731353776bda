import { StowageError } from '../../errors.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, partsOf, projectKey } from '../records/keys.ts'
import type { ProjectScope } from '../records/store.ts'
import { KeyedMutex } from '../../async/keyed-mutex.ts'
import type { RunCause } from '../schemas/types.ts'
import type { DomainParts } from './parts.ts'
import type { RunChanges } from './run-changes.ts'
import { isWaiting } from './run-record.ts'

/**
 * Marks a run from its creation until it starts, so that the runs of one automation are counted without reading every
 * run.
 */
export interface WaitingMark {
  readonly kind: RunCause['kind']
}

interface Waiting extends WaitingMark {
  readonly key: Uint8Array
  readonly runId: string
}

type Parts = Pick<DomainParts, 'store' | 'limits'> & { readonly changes: RunChanges }

/** The runs that nothing has started yet: a bounded number for each automation. */
export class WaitingRuns {
  readonly #parts: Parts
  readonly #mutex = new KeyedMutex()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Does work on the runs of an automation one after the other, so that a count holds until a run was added. Other
   * servers are not waited for: each may add one beyond the limit.
   */
  inTurn<T>(automationId: string, work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(automationId, work)
  }

  /** Throws `too_many_runs` if no further run of the automation may queue. */
  async checkRoom(scope: ProjectScope, automationId: string): Promise<void> {
    const { pendingRunsMax } = this.#parts.limits
    if ((await this.#found(scope, automationId, pendingRunsMax)).length < pendingRunsMax) return
    throw new StowageError(
      'too_many_runs',
      `the queue of this automation is full (${pendingRunsMax} runs); try again when some have started, or cancel some`,
    )
  }

  /**
   * Cancels runs of the automation while more than allowed queue: the oldest that versions started, then the oldest
   * that people started. People look at the newest version, so its run stays.
   */
  async giveWay(scope: ProjectScope, automationId: string): Promise<void> {
    const { pendingRunsMax } = this.#parts.limits
    const found = await this.#found(scope, automationId)
    const excess = found.length - pendingRunsMax
    if (excess <= 0) return
    const [triggered, asked] = [
      found.filter(({ kind }) => kind === 'version'),
      found.filter(({ kind }) => kind !== 'version'),
    ]
    for (const waiting of [...triggered.slice(0, -1), ...asked].slice(0, excess)) await this.#cancel(scope, waiting)
  }

  async #cancel(scope: ProjectScope, { key, runId }: Waiting): Promise<void> {
    const { store, changes, limits } = this.#parts
    const message = `superseded: a new version arrived while the queue of this automation was full (${limits.pendingRunsMax} runs), and this run was the first to give way`
    try {
      await changes.change(scope.projectId, runId, (run) =>
        isWaiting(run) ? { run: { status: 'canceled', message } } : undefined,
      )
    } catch (error) {
      if (!(error instanceof StowageError) || error.code !== 'not_found') throw error
    }
    // The change removed it already, unless the run was not waiting: then the mark means nothing, and would be counted
    // forever.
    await store.records.commit({ remove: [key] })
  }

  /** The oldest first. */
  async #found(scope: ProjectScope, automationId: string, limit?: number): Promise<readonly Waiting[]> {
    const found: Waiting[] = []
    const bounds = boundsOf(projectKey(scope, 'waiting', automationId))
    for await (const entries of this.#parts.store.records.range(limit === undefined ? bounds : { ...bounds, limit })) {
      for (const { key, value } of entries)
        found.push({ key, runId: partsOf(key).at(-1) ?? '', ...decodeRecord<WaitingMark>(key, value) })
    }
    return found
  }
}
