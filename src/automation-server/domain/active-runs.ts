import { StowageError } from '../../errors.ts'
import { boundsOf, globalKey, parseGeneration, partsOf } from '../records/keys.ts'
import type { AutomationStore } from '../records/store.ts'
import type { RunRecord } from './run-record.ts'

export interface ActiveRun {
  readonly projectId: string
  readonly run: RunRecord
}

/** The runs of all projects that have not ended. */
export class ActiveRuns {
  readonly #store: AutomationStore
  readonly #onDamage: (error: unknown) => void

  constructor(store: AutomationStore, onDamage: (error: unknown) => void) {
    this.#store = store
    this.#onDamage = onDamage
  }

  /** The oldest first. Marks of what is gone with its project are removed on the way. */
  async *all(signal?: AbortSignal): AsyncGenerator<ActiveRun> {
    const { records } = this.#store
    for await (const entries of records.range(boundsOf(globalKey('active')), { signal })) {
      for (const { key } of entries) {
        const found = await this.#found(key)
        if (found === 'gone') await records.commit({ remove: [key] })
        else if (found !== undefined) yield found
      }
    }
  }

  /** `gone` for a mark that stands for nothing any more: generations never come back. A damaged run is told, and keeps no other from being found. */
  async #found(key: Uint8Array): Promise<ActiveRun | 'gone' | undefined> {
    const [, , runId, projectId, generation] = partsOf(key)
    try {
      const scope = await this.#store.scope(projectId)
      if (scope?.generation !== parseGeneration(generation)) return 'gone'
      const run = (await this.#store.get<RunRecord>(scope, 'run', runId))?.value
      return run === undefined ? undefined : { projectId, run }
    } catch (error) {
      if (error instanceof StowageError && error.retryable) throw error
      this.#onDamage(error)
      return undefined
    }
  }
}
