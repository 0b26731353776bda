import type { ServiceContext } from '../../service/extension.ts'
import type { StoreEpochs } from '../../object/epochs.ts'
import { generationText, globalKey, projectKey } from '../records/keys.ts'
import { expectSame, type ProjectScope, type Stored } from '../records/store.ts'
import { checkResourceId, notFoundError, PAGE_ITEMS_MAX } from '../schemas/checks.ts'
import type { Model, Page, Version } from '../schemas/types.ts'
import { type ModelRecord, type Models, modelView } from './models.ts'
import type { DomainParts } from './parts.ts'
import { type VersionRecord, type Versions, versionView } from './versions.ts'

type Emit = ServiceContext<never>['emit']

type Parts = Pick<DomainParts, 'store'> & {
  readonly emit: Emit
  readonly epochs: StoreEpochs
  readonly models: Models
  readonly versions: Versions
}

const EPOCH_DIGITS = 12

/**
 * Deletes models and versions, and restores them. A deleted one leaves lists and starts nothing, but keeps its record
 * and its objects until the period of grace ends, counted in the store's epochs. A mark, sorted by epoch, tells the
 * upkeep of it.
 */
export class Deletion {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Does nothing to one that is deleted already. Throws `not_found`. */
  deleteModel(projectId: string, modelId: string): Promise<Model> {
    const { store, models, epochs } = this.#parts
    return this.#changed(projectId, ['model', modelId], async (scope) => {
      const stored = await models.stored(scope, modelId)
      if (stored.value.deletion !== null) return modelView(stored.value)
      const { number: epoch, expectation } = await epochs.current()
      const deleted: ModelRecord = { ...stored.value, deletedAt: store.nowText(), deletion: { epoch } }
      const put = [store.entry(stored.key, deleted), store.entry(deletedKey(scope, epoch, modelId), {})]
      return (await store.commit(scope, { put, expect: [expectSame(stored), expectation] }))
        ? this.#told(scope, 'model', 'deleted', modelView(deleted))
        : undefined
    })
  }

  /**
   * Does nothing to one that is not deleted. Throws `not_found`, also when the grace has ended and the upkeep has
   * removed it.
   */
  restoreModel(projectId: string, modelId: string): Promise<Model> {
    const { store, models } = this.#parts
    return this.#changed(projectId, ['model', modelId], async (scope) => {
      const stored = await models.stored(scope, modelId)
      if (stored.value.deletion === null) return modelView(stored.value)
      const restored: ModelRecord = { ...stored.value, deletedAt: null, deletion: null }
      return (await store.commit(scope, {
        put: [store.entry(stored.key, restored)],
        remove: [deletedKey(scope, stored.value.deletion.epoch, modelId)],
        expect: [expectSame(stored)],
      }))
        ? this.#told(scope, 'model', 'restored', modelView(restored))
        : undefined
    })
  }

  /** Does nothing to one that is deleted already. Throws `not_found`, and `conflict` while its model is deleted. */
  deleteVersion(
    projectId: string,
    modelId: string,
    versionId: string,
    { byRetention = false }: { readonly byRetention?: boolean } = {},
  ): Promise<Version> {
    const { store, models, versions, epochs } = this.#parts
    return this.#changed(projectId, ['version', versionId], async (scope) => {
      const model = await models.live(scope, modelId)
      const stored = await versions.stored(scope, modelId, versionId)
      if (stored.value.deletion !== null || (byRetention && stored.value.kept)) return versionView(stored.value)
      const { number: epoch, expectation } = await epochs.current()
      const deleted: VersionRecord = { ...stored.value, deletedAt: store.nowText(), deletion: { epoch, byRetention } }
      const put = [
        store.entry(stored.key, deleted),
        store.entry(model.key, await this.#without(scope, model, versionId)),
        store.entry(deletedKey(scope, epoch, modelId, versionId), {}),
      ]
      return (await store.commit(scope, { put, expect: [expectSame(model), expectSame(stored), expectation] }))
        ? this.#told(scope, 'version', byRetention ? 'expired' : 'deleted', versionView(deleted))
        : undefined
    })
  }

  /**
   * Does nothing to one that is not deleted. What a retention rule deleted is restored with `kept`, since the rule would delete it again. Throws
   * `not_found`, also when the grace has ended, and `conflict` while its model is deleted.
   */
  restoreVersion(projectId: string, modelId: string, versionId: string): Promise<Version> {
    const { store, models, versions } = this.#parts
    return this.#changed(projectId, ['version', versionId], async (scope) => {
      const model = await models.live(scope, modelId)
      const stored = await versions.stored(scope, modelId, versionId)
      const { deletion } = stored.value
      if (deletion === null) return versionView(stored.value)
      const kept = stored.value.kept || deletion.byRetention
      const restored: VersionRecord = { ...stored.value, kept, deletedAt: null, deletion: null }
      const { versionCount, latestVersionId } = model.value
      // Ids sort by age.
      const latest = latestVersionId === null || versionId > latestVersionId ? versionId : latestVersionId
      return (await store.commit(scope, {
        put: [
          store.entry(stored.key, restored),
          store.entry(model.key, { ...model.value, versionCount: versionCount + 1, latestVersionId: latest }),
        ],
        remove: [deletedKey(scope, deletion.epoch, modelId, versionId)],
        expect: [expectSame(model), expectSame(stored)],
      }))
        ? this.#told(scope, 'version', 'restored', versionView(restored))
        : undefined
    })
  }

  async #changed<T>(
    projectId: string,
    [what, id]: readonly ['model' | 'version', string],
    attempt: (scope: ProjectScope) => Promise<T | undefined>,
  ): Promise<T> {
    checkResourceId(id, what)
    const { store } = this.#parts
    return store.retried(async () => {
      const scope = await store.scope(projectId)
      if (scope === undefined) throw notFoundError(what, id)
      return attempt(scope)
    })
  }

  #told<T extends { readonly id: string }>(
    { projectId }: ProjectScope,
    kind: 'model' | 'version',
    action: 'deleted' | 'expired' | 'restored',
    view: T,
  ): T {
    this.#parts.emit('deletion', () => ({ projectId, kind, action, id: view.id }))
    return view
  }

  async #without(scope: ProjectScope, { value }: Stored<ModelRecord>, versionId: string): Promise<ModelRecord> {
    const { versionCount, latestVersionId } = value
    return {
      ...value,
      versionCount: versionCount - 1,
      latestVersionId:
        latestVersionId === versionId ? await this.#latestBefore(scope, value.id, versionId) : latestVersionId,
    }
  }

  async #latestBefore(scope: ProjectScope, modelId: string, versionId: string): Promise<string | null> {
    for (let cursor: string | null = versionId; cursor !== null;) {
      const page: Page<{ readonly name: string; readonly value: VersionRecord }> =
        await this.#parts.store.page<VersionRecord>(projectKey(scope, 'version', modelId), {
          limit: PAGE_ITEMS_MAX,
          cursor,
          newestFirst: true,
        })
      const live = page.items.find(({ value }) => value.deletion === null)
      if (live !== undefined) return live.name
      cursor = page.cursor
    }
    return null
  }
}

/** The mark of a deleted model or version. Marks sort by the epoch of the deletion. */
export function deletedKey(
  { projectId, generation }: Pick<ProjectScope, 'projectId' | 'generation'>,
  epoch: number,
  modelId: string,
  versionId?: string,
): Uint8Array {
  const parts = [epoch.toString(16).padStart(EPOCH_DIGITS, '0'), projectId, generationText(generation), modelId]
  return globalKey('deleted', ...parts, ...(versionId === undefined ? [] : [versionId]))
}
