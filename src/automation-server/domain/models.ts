import { projectKey } from '../records/keys.ts'
import { type AutomationStore, expectAbsent, type ProjectScope, type Stored } from '../records/store.ts'
import type { Model, NewModel, Page, PageRequest } from '../schemas/types.ts'
import { checkName, checkPage, checkResourceId, notHeld } from '../schemas/checks.ts'

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
      const model: Model = {
        id: store.newId(),
        name,
        createdAt: store.nowText(),
        versionCount: 0,
        latestVersionId: null,
      }
      const key = projectKey(scope, 'model', model.id)
      return (await store.commit(scope, { put: [store.entry(key, model)], expect: [expectAbsent(key)] }))
        ? model
        : undefined
    })
  }

  /** Throws `not_found`. */
  async get(projectId: string, modelId: string): Promise<Model> {
    checkResourceId(modelId, 'model')
    const scope = await this.#store.scope(projectId)
    if (scope === undefined) throw notHeld('model', modelId)
    return (await this.stored(scope, modelId)).value
  }

  async stored(scope: ProjectScope, modelId: string): Promise<Stored<Model>> {
    checkResourceId(modelId, 'model')
    const stored = await this.#store.get<Model>(scope, 'model', modelId)
    if (stored === undefined) throw notHeld('model', modelId)
    return stored
  }

  /** The oldest first. */
  async list(projectId: string, request: PageRequest = {}): Promise<Page<Model>> {
    checkPage(request)
    const scope = await this.#store.scope(projectId)
    if (scope === undefined) return { items: [], cursor: null }
    const { items, cursor } = await this.#store.page<Model>(projectKey(scope, 'model'), request)
    return { items: items.map(({ value }) => value), cursor }
  }
}
