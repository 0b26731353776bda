import { globalKey, boundsOf, generationText, parseGeneration, partsOf } from '../records/keys.ts'
import { decodeRecord } from '../records/codec.ts'
import { timedId, timeOfId } from '../records/store.ts'
import { ErrorCollector } from './error-collector.ts'
import type { Automations } from './automations.ts'
import type { Models } from './models.ts'
import type { DomainParts } from './parts.ts'
import type { Runs } from './runs.ts'
import type { TriggerMark, VersionRecord } from './versions.ts'

type Parts = Pick<DomainParts, 'store' | 'limits'> & {
  readonly models: Models
  readonly automations: Automations
  readonly runs: Runs
}

/**
 * Starts automations on new versions. A version is created together with a mark, which is removed when all its runs
 * exist. So runs that a crash or a storage failure prevented are started later, and each automation runs once on a
 * version.
 */
export class Triggers {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Works off every mark that there is. */
  async run(signal: AbortSignal): Promise<void> {
    const { store } = this.#parts
    const errors = new ErrorCollector()
    for await (const entries of store.records.range(boundsOf(globalKey('trigger')), { signal })) {
      for (const { key, value } of entries) {
        signal.throwIfAborted()
        const [, , , projectId, generation] = partsOf(key)
        await errors.attempt(async () => {
          await this.#workOff(projectId, parseGeneration(generation), decodeRecord<TriggerMark>(key, value))
          await store.records.commit({ remove: [key] })
        })
      }
    }
    errors.check()
  }

  /** Works off the mark of one version. */
  async runVersion(projectId: string, mark: TriggerMark): Promise<void> {
    const { store } = this.#parts
    const scope = await store.scope(projectId)
    if (scope === undefined) return
    await this.#workOff(projectId, scope.generation, mark)
    await store.records.commit({
      remove: [globalKey('trigger', mark.versionId, projectId, generationText(scope.generation))],
    })
  }

  async #workOff(projectId: string, generation: number, { modelId, versionId }: TriggerMark): Promise<void> {
    const { store, models, automations, runs, limits } = this.#parts
    const scope = await store.scope(projectId)
    if (scope === undefined || scope.generation !== generation) return
    if (!(await models.isLive(scope, modelId))) return
    const version = (await store.get<VersionRecord>(scope, 'version', modelId, versionId))?.value
    if (version === undefined || version.deletedAt !== null || version.chain.length >= limits.chainMax) return
    for (const automation of await automations.triggeredBy(scope, modelId)) {
      // A version that an automation led to, itself or through others, does not start it again.
      if (version.chain.includes(automation.id)) continue
      await runs.trigger(scope, timedId(timeOfId(versionId), `${automation.id} ${versionId}`), automation, version)
    }
  }
}
