import { boundsOf, globalKey, parseGeneration, partsOf, projectKey } from '../records/keys.ts'
import type { AutomationStore } from '../records/store.ts'
import type { RunRecord } from './run-record.ts'

export interface ActiveRun {
  readonly projectId: string
  readonly run: RunRecord
}

/** The runs of all projects that have not ended. */
export class ActiveRuns {
  readonly #store: AutomationStore

  constructor(store: AutomationStore) {
    this.#store = store
  }

  /** The oldest first. Marks of what is gone with its project are removed on the way. */
  async *all(signal?: AbortSignal): AsyncGenerator<ActiveRun> {
    const { records } = this.#store
    for await (const entries of records.range(boundsOf(globalKey('active')), { signal })) {
      for (const { key } of entries) {
        const [, , runId, projectId, generationText] = partsOf(key)
        const generation = parseGeneration(generationText)
        const scope = await this.#store.scope(projectId)
        if (scope?.generation === generation) {
          const [run] = await this.#store.getMany<RunRecord>([projectKey(scope, 'run', runId)])
          if (run !== undefined) yield { projectId, run }
        } else {
          // Generations never come back: such a mark stands for nothing any more.
          await records.commit({ remove: [key] })
        }
      }
    }
  }
}
