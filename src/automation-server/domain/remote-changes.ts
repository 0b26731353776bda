import { BackgroundLoop } from '../../async/background-loop.ts'
import type { Environment } from '../../environment.ts'
import { projectKey } from '../records/keys.ts'
import type { AutomationStore } from '../records/store.ts'
import type { RunRecord } from './run-record.ts'
import type { RunAddress, RunSignals } from './run-signals.ts'

const LOOK_INTERVAL_MS = 500
/** Records that are read together: some MB at most. */
const READ_AT_ONCE = 64

interface Parts {
  readonly store: AutomationStore
  readonly signals: RunSignals
  readonly environment: Environment
}

/**
 * Signals changes that another server made to runs that somebody on this server listens to. All of them are read
 * together, so the cost does not grow with the number of listeners to one run.
 */
export class RemoteChanges {
  readonly #parts: Parts
  readonly #loop: BackgroundLoop
  #revisions = new Map<string, number | undefined>()

  constructor(parts: Parts) {
    this.#parts = parts
    // A listener that is not signaled looks for itself later, so a failure of the storage needs no report.
    this.#loop = new BackgroundLoop(() => this.#look().catch(() => undefined), LOOK_INTERVAL_MS, parts.environment)
  }

  start(): void {
    this.#loop.later()
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
  }

  async #look(): Promise<void> {
    const listened = this.#parts.signals.listened()
    const before = this.#revisions
    this.#revisions = new Map()
    for (let at = 0; at < listened.length; at += READ_AT_ONCE) {
      const some = listened.slice(at, at + READ_AT_ONCE)
      const revisions = await this.#revisionsOf(some)
      for (const [index, { runId }] of some.entries()) {
        const revision = revisions[index]
        this.#revisions.set(runId, revision)
        // The first time too: the run may have changed since its listener looked.
        if (!before.has(runId) || before.get(runId) !== revision) this.#parts.signals.changed(runId)
      }
    }
  }

  /** `undefined` for a run that is gone. */
  async #revisionsOf(runs: readonly RunAddress[]): Promise<readonly (number | undefined)[]> {
    const { store } = this.#parts
    const scopes = await store.scopes(new Set(runs.map(({ projectId }) => projectId)))
    const found = runs.flatMap(({ projectId, runId }, index) => {
      const scope = scopes.get(projectId)
      return scope === undefined ? [] : [{ index, key: projectKey(scope, 'run', runId) }]
    })
    const records = await store.getMany<RunRecord>(found.map(({ key }) => key))
    const revisions = runs.map((): number | undefined => undefined)
    for (const [at, { index }] of found.entries()) revisions[index] = records[at]?.revision
    return revisions
  }
}
