import { StowageError } from '../../errors.ts'
import type { Entry } from '../../storage/backend.ts'
import { decodeRecord } from '../records/codec.ts'
import { boundsOf, globalKey, parseGeneration, partsOf, projectKey } from '../records/keys.ts'
import type { AutomationStore, ProjectScope } from '../records/store.ts'
import type { RunRecord } from './run-record.ts'

/** Records that are read together: some MB at most. */
const READ_AT_ONCE = 64
const TOLD_MAX = 1_000

export interface ActiveRun {
  readonly projectId: string
  readonly run: RunRecord
}

/** The runs of all projects that have not ended. */
export class ActiveRuns {
  readonly #store: AutomationStore
  readonly #onDamage: (error: unknown) => void
  readonly #told = new Set<string>()

  constructor(store: AutomationStore, onDamage: (error: unknown) => void) {
    this.#store = store
    this.#onDamage = onDamage
  }

  /** The oldest first. Marks that were removed with their project are deleted on the way. */
  async *all(signal?: AbortSignal): AsyncGenerator<ActiveRun> {
    for await (const entries of this.#store.records.range(boundsOf(globalKey('active')), { signal })) {
      for (let at = 0; at < entries.length; at += READ_AT_ONCE) yield* this.#found(entries.slice(at, at + READ_AT_ONCE))
    }
  }

  /** Many at once, since this server may be unable to run most of those that wait. */
  async *#found(entries: readonly Entry[]): AsyncGenerator<ActiveRun> {
    const { records } = this.#store
    const marks = entries.map(({ key }) => markOf(key))
    const scopes = await this.#scopes(new Set(marks.map(({ projectId }) => projectId)))
    const gone = marks.filter(
      ({ projectId, generation }) => scopes.has(projectId) && scopes.get(projectId)?.generation !== generation,
    )
    for (const { key } of gone) await records.commit({ remove: [key] })
    const keys = marks
      .filter(({ projectId, generation }) => scopes.get(projectId)?.generation === generation)
      .map((mark) => ({ mark, runKey: projectKey(mark, 'run', mark.runId) }))
    const values = await records.getMany(keys.map(({ runKey }) => runKey))
    for (const [at, value] of values.entries()) {
      const { mark, runKey } = keys[at]
      const run = value === undefined ? undefined : this.#decoded(runKey, value, mark.runId)
      if (run !== undefined) yield { projectId: mark.projectId, run }
    }
  }

  /** `undefined` for a project that is gone; one whose head is damaged is not among them. */
  async #scopes(projectIds: ReadonlySet<string>): Promise<ReadonlyMap<string, ProjectScope | undefined>> {
    const scopes = new Map<string, ProjectScope | undefined>()
    for (const projectId of projectIds) {
      try {
        scopes.set(projectId, await this.#store.scope(projectId))
      } catch (error) {
        this.#tell(error, projectId)
      }
    }
    return scopes
  }

  #decoded(key: Uint8Array, value: Uint8Array, runId: string): RunRecord | undefined {
    try {
      return decodeRecord<RunRecord>(key, value)
    } catch (error) {
      this.#tell(error, runId)
      return undefined
    }
  }

  /** A damaged record hides no other run. It is met again and again, and reported once. */
  #tell(error: unknown, id: string): void {
    if (error instanceof StowageError && error.isRetryable) throw error
    if (this.#told.has(id)) return
    if (this.#told.size >= TOLD_MAX) this.#told.clear()
    this.#told.add(id)
    this.#onDamage(error)
  }
}

/** Generations never come back, so a mark of another one means nothing any more. */
function markOf(key: Uint8Array): {
  readonly key: Uint8Array
  readonly runId: string
  readonly projectId: string
  readonly generation: number
} {
  const [, , runId, projectId, generation] = partsOf(key)
  return { key, runId, projectId, generation: parseGeneration(generation) }
}
