import type {
  Model,
  ModelChange,
  PruneRequest,
  PruneResult,
  Version,
  VersionChange,
} from '../../automation-server/index.ts'
import { ClientError } from '../../client/common/errors.ts'
import type { Connection } from '../../client/http/connection.ts'
import { parseJson } from '../../client/http/remote.ts'
import type { RetryPolicy } from '../../client/http/retry.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'

const PAGE_ITEMS = 1_000
const ANSWER_BYTES_MAX = 67_108_864
/** The creator that versions name. */
const SOURCE = 'stowage'

/** A project on a server, and how to reach it. */
export interface ModelsParts {
  readonly connection: Connection
  readonly retry: RetryPolicy
  readonly projectId: string
  readonly signal: AbortSignal
}

/** The items of a list. */
export interface ListFilter {
  /** Whether deleted ones are in it too. */
  readonly deleted?: boolean
}

interface Asked {
  /** Below the project. */
  readonly path: readonly string[]
  readonly query?: readonly (readonly [string, string])[]
  /** `GET` by default, `POST` with a body. */
  readonly method?: 'POST' | 'PATCH' | 'DELETE'
  readonly json?: object
}

/** Models and versions of a project, as the commands need them. Calls reject with `ClientError`. */
export class RemoteModels {
  readonly #parts: ModelsParts

  constructor(parts: ModelsParts) {
    this.#parts = parts
  }

  /** All models in pages, the oldest first. */
  list(filter: ListFilter = {}): AsyncGenerator<readonly Model[]> {
    return this.#pages<Model>(['models'], filter)
  }

  /** The versions of a model in pages, the newest first. */
  versions({ id }: Pick<Model, 'id'>, filter: ListFilter = {}): AsyncGenerator<readonly Version[]> {
    return this.#pages<Version>(['models', id, 'versions'], filter)
  }

  /** A model by its id or its name. Throws `invalid_request` when several have that name. */
  async find(nameOrId: string, filter: ListFilter = {}): Promise<Model | undefined> {
    const named: Model[] = []
    for await (const page of this.list(filter)) {
      for (const model of page) {
        if (model.id === nameOrId) return model
        if (model.name === nameOrId) named.push(model)
      }
    }
    if (named.length < 2) return named[0]
    const ids = named.map(({ id }) => id).join(', ')
    throw new StowageError(
      'invalid_request',
      `${named.length} models are called ${quoted(nameOrId)}; give the id of one: ${ids}`,
    )
  }

  /** The same. Throws `not_found` when there is none. */
  async get(nameOrId: string, filter: ListFilter = {}): Promise<Model> {
    const model = await this.find(nameOrId, filter)
    if (model !== undefined) return model
    throw new StowageError(
      'not_found',
      `there is no model ${quoted(nameOrId)} in this project; "stowage model list" shows the models, "stowage model create" makes one`,
    )
  }

  /** Creates a model. Models may share a name: to avoid that, look first. */
  async create(name: string): Promise<Model> {
    const before = new Set((await this.#named(name)).map(({ id }) => id))
    return this.#makeOnce({ path: ['models'], json: { name } }, async () =>
      (await this.#named(name)).find(({ id }) => !before.has(id)),
    )
  }

  /** Makes a version of a model. Throws `objects_missing` when something below the root is not held. */
  createVersion(model: Pick<Model, 'id' | 'latestVersionId'>, rootObjectId: string, message: string): Promise<Version> {
    const path = ['models', model.id]
    const json = { rootObjectId, message, source: SOURCE }
    return this.#makeOnce({ path: [...path, 'versions'], json }, async () => {
      const { latestVersionId } = await this.#once<Model>({ path })
      if (latestVersionId === null || latestVersionId === model.latestVersionId) return undefined
      const latest = await this.#once<Version>({ path: [...path, 'versions', latestVersionId] })
      return latest.rootObjectId === rootObjectId && latest.message === message ? latest : undefined
    })
  }

  change({ id }: Pick<Model, 'id'>, change: ModelChange): Promise<Model> {
    return this.#repeatable({ method: 'PATCH', path: ['models', id], json: change })
  }

  delete({ id }: Pick<Model, 'id'>): Promise<Model> {
    return this.#repeatable({ method: 'DELETE', path: ['models', id] })
  }

  restore({ id }: Pick<Model, 'id'>): Promise<Model> {
    return this.#repeatable({ method: 'POST', path: ['models', id, 'restore'] })
  }

  prune({ id }: Pick<Model, 'id'>, request: PruneRequest): Promise<PruneResult> {
    const { retry, signal } = this.#parts
    const asked: Asked = { method: 'POST', path: ['models', id, 'prune'], json: request }
    return retry.run(signal, async () => (await this.#json(asked)) as unknown as PruneResult)
  }

  changeVersion({ id }: Pick<Model, 'id'>, versionId: string, change: VersionChange): Promise<Version> {
    return this.#repeatable({ method: 'PATCH', path: ['models', id, 'versions', versionId], json: change })
  }

  deleteVersion({ id }: Pick<Model, 'id'>, versionId: string): Promise<Version> {
    return this.#repeatable({ method: 'DELETE', path: ['models', id, 'versions', versionId] })
  }

  restoreVersion({ id }: Pick<Model, 'id'>, versionId: string): Promise<Version> {
    return this.#repeatable({ method: 'POST', path: ['models', id, 'versions', versionId, 'restore'] })
  }

  /** A request that may be sent twice with the same result. */
  #repeatable<T extends { readonly id: string }>(asked: Asked): Promise<T> {
    return this.#parts.retry.run(this.#parts.signal, () => this.#once<T>(asked))
  }

  async #named(name: string): Promise<readonly Model[]> {
    const named: Model[] = []
    for await (const page of this.list()) named.push(...page.filter((model) => model.name === name))
    return named
  }

  /** A request whose response was lost may have succeeded. Before it is sent again, `made` looks for its result. */
  #makeOnce<T extends { readonly id: string }>(asked: Asked, made: () => Promise<T | undefined>): Promise<T> {
    let tries = 0
    return this.#parts.retry.run(this.#parts.signal, async () => {
      const already = tries++ === 0 ? undefined : await made()
      return already ?? this.#once<T>(asked)
    })
  }

  async *#pages<T>(path: readonly string[], { deleted = false }: ListFilter): AsyncGenerator<readonly T[]> {
    let cursor: string | null = null
    do {
      const query: [string, string][] = [
        ['limit', String(PAGE_ITEMS)],
        ...(deleted ? [['deleted', 'true'] satisfies [string, string]] : []),
        ...(cursor === null ? [] : [['cursor', cursor] satisfies [string, string]]),
      ]
      const page: { items?: unknown; cursor?: unknown } = await this.#parts.retry.run(this.#parts.signal, () =>
        this.#json({ path, query }),
      )
      if (!Array.isArray(page.items))
        throw new ClientError('invalid_answer', `a page of ${path.join('/')} holds no list of items`)
      yield page.items as T[]
      cursor = typeof page.cursor === 'string' ? page.cursor : null
    } while (cursor !== null)
  }

  async #once<T extends { readonly id: string }>(asked: Asked): Promise<T> {
    const made = await this.#json(asked)
    if (typeof made.id === 'string') return made as unknown as T
    throw new ClientError('invalid_answer', `the response of ${asked.path.join('/')} has no id`)
  }

  async #json({ path, query, method, json }: Asked): Promise<Readonly<Record<string, unknown>>> {
    const { connection, projectId, signal } = this.#parts
    const body = json === undefined ? undefined : JSON.stringify(json)
    const answer = await connection.request({
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      path: ['api', 'v1', 'projects', projectId, ...path],
      ...(query === undefined ? {} : { query }),
      headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body, bodyBytes: body.length }),
      signal,
    })
    answer.checkType('application/json')
    return parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what)
  }
}
