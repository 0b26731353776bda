import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import { projectKey } from '../records/keys.ts'
import { type AutomationStore, expectAbsent, expectSame, type ProjectScope, type Stored } from '../records/store.ts'
import type { DeletableFilter, Model, ModelChange, NewModel, Page } from '../schemas/types.ts'
import { checkName, checkPage, checkResourceId, notFoundError } from '../schemas/checks.ts'

/** The time of a deletion, in the store's own time. */
export interface DeletionMark {
  readonly epoch: number
}

/** A model as it is kept. */
export interface ModelRecord extends Model {
  /** The newest version that there ever was, so that ids of later ones sort after it. */
  readonly newestVersionId: string | null
  /** `null` unless it is deleted. */
  readonly deletion: DeletionMark | null
}

/** Named lines of versions. */
export class Models {
  readonly #store: AutomationStore

  constructor({ store }: { readonly store: AutomationStore }) {
    this.#store = store
  }

  async create(projectId: string, { name }: NewModel): Promise<Model> {
    checkName(name, "the model's name")
    const store = this.#store
    return store.retried(async () => {
      const scope = await store.writingScope(projectId)
      const record: ModelRecord = {
        id: store.newId(),
        name,
        createdAt: store.nowText(),
        versionCount: 0,
        latestVersionId: null,
        newestVersionId: null,
        retention: null,
        deletedAt: null,
        deletion: null,
      }
      const key = projectKey(scope, 'model', record.id)
      return (await store.commit(scope, { put: [store.entry(key, record)], expect: [expectAbsent(key)] }))
        ? modelView(record)
        : undefined
    })
  }

  /** Answers deleted ones too. Throws `not_found`. */
  async get(projectId: string, modelId: string): Promise<Model> {
    checkResourceId(modelId, 'model')
    const scope = await this.#store.scope(projectId)
    if (scope === undefined) throw notFoundError('model', modelId)
    return modelView((await this.stored(scope, modelId)).value)
  }

  /** Throws `not_found`, and `conflict` for a deleted one. */
  async getLive(projectId: string, modelId: string): Promise<Model> {
    const model = await this.get(projectId, modelId)
    checkLive(model)
    return model
  }

  async stored(scope: ProjectScope, modelId: string): Promise<Stored<ModelRecord>> {
    checkResourceId(modelId, 'model')
    const stored = await this.#store.get<ModelRecord>(scope, 'model', modelId)
    if (stored === undefined) throw notFoundError('model', modelId)
    return stored
  }

  /** Throws `not_found`, and `conflict` for a deleted one. */
  async live(scope: ProjectScope, modelId: string): Promise<Stored<ModelRecord>> {
    const stored = await this.stored(scope, modelId)
    checkLive(stored.value)
    return stored
  }

  /** Whether it is there and not deleted. */
  async isLive(scope: ProjectScope, modelId: string): Promise<boolean> {
    return (await this.#store.get<ModelRecord>(scope, 'model', modelId))?.value.deletion === null
  }

  /** The oldest first, without deleted ones unless they are asked for. */
  async list(projectId: string, { deleted = false, ...request }: DeletableFilter = {}): Promise<Page<Model>> {
    checkPage(request)
    const scope = await this.#store.scope(projectId)
    if (scope === undefined) return { items: [], cursor: null }
    const { items, cursor } = await this.#store.page<ModelRecord>(projectKey(scope, 'model'), request)
    const shown = items.filter(({ value }) => deleted || value.deletion === null)
    return { items: shown.map(({ value }) => modelView(value)), cursor }
  }

  /** Throws `not_found`, and `conflict` for a deleted one. */
  async change(projectId: string, modelId: string, { name, retention }: ModelChange): Promise<Model> {
    if (name !== undefined) checkName(name, "the model's name")
    const store = this.#store
    const record = await store.retried(async () => {
      const scope = await store.scope(projectId)
      if (scope === undefined) throw notFoundError('model', modelId)
      const stored = await this.live(scope, modelId)
      const changed: ModelRecord = {
        ...stored.value,
        name: name ?? stored.value.name,
        retention: retention === undefined ? stored.value.retention : retention,
      }
      const change = { put: [store.entry(stored.key, changed)], expect: [expectSame(stored)] }
      return (await store.commit(scope, change)) ? changed : undefined
    })
    return modelView(record)
  }
}

export function modelView(record: ModelRecord): Model {
  const { id, name, createdAt, versionCount, latestVersionId, retention, deletedAt } = record
  return { id, name, createdAt, versionCount, latestVersionId, retention, deletedAt }
}

function checkLive({ id, deletedAt }: Model): void {
  if (deletedAt !== null) throw new StowageError('conflict', `the model ${quoted(id)} is deleted; restore it first`)
}
