import type { CallOptions } from '../common/types.ts'
import { checkPathId, parseJson, type Remote } from '../http/remote.ts'
import type { DeletableFilter, Page, RunFilter } from './types.ts'
import { type RemoteUpkeep, upkeepOf } from './upkeep.ts'
import type {
  Model,
  ModelChange,
  NewModelVersion,
  NewPin,
  Pin,
  ProjectUsage,
  PruneRequest,
  PruneResult,
  Run,
  Version,
} from './wire-types.ts'

/** Models of a project. Calls reject with `ClientError`, as all of the client do. */
export interface RemoteModels {
  /** The oldest first. */
  list(request?: DeletableFilter & CallOptions): Promise<Page<Model>>
  /** One model. Throws `not_found`. */
  get(modelId: string, options?: CallOptions): Promise<Model>
  /** Tried once: if the response is lost, check whether it was created. */
  create(wanted: { readonly name: string }, options?: CallOptions): Promise<Model>
  /** Changes the name or the retention rule. Throws `not_found`, and `conflict` for a deleted model. */
  change(modelId: string, change: ModelChange, options?: CallOptions): Promise<Model>
  /** Deletes a model. It can be restored until the server's grace ends, 14 days by default. Throws `not_found`. */
  delete(modelId: string, options?: CallOptions): Promise<Model>
  /** Undoes `delete`. Throws `not_found` once the grace has ended. */
  restore(modelId: string, options?: CallOptions): Promise<Model>
  /**
   * Deletes the versions that a retention rule does not keep: that of the model, or the one in the request. At most
   * 1,000: `hasMore` tells whether another call has more to do. With `dryRun` it only lists them. They can be restored
   * until the server's grace ends. Throws `not_found`, and `conflict` where there is no rule.
   */
  prune(modelId: string, request?: PruneRequest, options?: CallOptions): Promise<PruneResult>
}

/** Versions of models. */
export interface RemoteVersions {
  /** The newest first. */
  list(modelId: string, request?: DeletableFilter & CallOptions): Promise<Page<Version>>
  /** One version of a model. Throws `not_found`. */
  get(modelId: string, versionId: string, options?: CallOptions): Promise<Version>
  /**
   * Everything below the root must be held (`objects_missing`). Tried once: if the response is lost, check whether it
   * was created.
   */
  create(modelId: string, wanted: NewModelVersion, options?: CallOptions): Promise<Version>
  /** Keeps a version from retention rules, or no longer. Throws `not_found`. */
  change(
    modelId: string,
    versionId: string,
    change: { readonly kept?: boolean },
    options?: CallOptions,
  ): Promise<Version>
  /** Deletes a version. It can be restored until the server's grace ends, 14 days by default. Throws `not_found`. */
  delete(modelId: string, versionId: string, options?: CallOptions): Promise<Version>
  /** Undoes `delete`. Throws `not_found` once the grace has ended. */
  restore(modelId: string, versionId: string, options?: CallOptions): Promise<Version>
}

/** Runs of automations. */
export interface RemoteRuns {
  /** The newest first. */
  list(filter?: RunFilter & CallOptions): Promise<Page<Run>>
  /** One run. Throws `not_found`. */
  get(runId: string, options?: CallOptions): Promise<Run>
}

/** Pins of a project: each keeps an object and everything below it. */
export interface RemotePins {
  /** All of them, the oldest first. */
  list(options?: CallOptions): Promise<readonly Pin[]>
  /**
   * Tried once: if the response is lost, check whether it was created. Throws `objects_missing` if the object is not
   * held.
   */
  add(wanted: NewPin, options?: CallOptions): Promise<Pin>
  /** Throws `not_found`. */
  remove(pinId: string, options?: CallOptions): Promise<void>
}

/** Models, versions, runs and pins of a project, on a server that has them. */
export interface ProjectResources {
  /** Pins of the project. */
  readonly pins: RemotePins
  /** Collection of unreferenced objects, and compaction. */
  readonly upkeep: RemoteUpkeep
  /**
   * The usage of the project, its models and its versions. Throws `not_found` for a project that does not exist: one of
   * which the server holds neither objects nor models.
   */
  usage(options?: CallOptions): Promise<ProjectUsage>
  /** Models of the project. */
  readonly models: RemoteModels
  /** Versions of the models. */
  readonly versions: RemoteVersions
  /** Runs of the project. */
  readonly runs: RemoteRuns
}

const ANSWER_BYTES_MAX = 16 * 1_048_576

/** Models, versions, runs and pins, on servers that have them. */
export function projectResources(remote: Remote): ProjectResources {
  const requests = requestsOf(remote)
  const { read, made, done } = requests
  return {
    pins: pinsOf(requests),
    upkeep: upkeepOf(remote, read),
    usage: (options) => read(['usage'], options),
    models: {
      list: (request) => read(['models'], request),
      get: (modelId, options) => read(['models', modelId], options),
      create: (wanted, options) => made(['models'], wanted, options),
      change: (modelId, change, options) => done('PATCH', ['models', modelId], change, options),
      delete: (modelId, options) => done('DELETE', ['models', modelId], undefined, options),
      restore: (modelId, options) => done('POST', ['models', modelId, 'restore'], undefined, options),
      prune: (modelId, request = {}, options) => done('POST', ['models', modelId, 'prune'], request, options),
    },
    versions: {
      list: (modelId, request) => read(['models', modelId, 'versions'], request),
      get: (modelId, versionId, options) => read(['models', modelId, 'versions', versionId], options),
      create: (modelId, wanted, options) => made(['models', modelId, 'versions'], wanted, options),
      change: (modelId, versionId, change, options) =>
        done('PATCH', ['models', modelId, 'versions', versionId], change, options),
      delete: (modelId, versionId, options) =>
        done('DELETE', ['models', modelId, 'versions', versionId], undefined, options),
      restore: (modelId, versionId, options) =>
        done('POST', ['models', modelId, 'versions', versionId, 'restore'], undefined, options),
    },
    runs: { list: (filter) => read(['runs'], filter), get: (runId, options) => read(['runs', runId], options) },
  }
}

function pinsOf({ read, made, gone }: Requests): RemotePins {
  return {
    list: async (options) => (await read<{ readonly items: readonly Pin[] }>(['pins'], options)).items,
    add: (wanted, options) => made(['pins'], wanted, options),
    remove: (pinId, options) => gone(['pins', pinId], options),
  }
}

type Requests = ReturnType<typeof requestsOf>

/** Requests below the project. */
function requestsOf({ connection, retry, projectId }: Remote) {
  const below = (path: readonly string[]): readonly string[] => ['api', 'v1', 'projects', projectId, ...path]
  const read = async <T>(
    path: readonly string[],
    request: RunFilter & DeletableFilter & { readonly tops?: boolean | undefined } & CallOptions = {},
  ): Promise<T> => {
    for (const step of path) checkPathId(step)
    const { signal, ...asked } = request
    const query = Object.entries<string | number | boolean | undefined>({ ...asked }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as const],
    )
    return retry.run(signal, async () => {
      const headers = { Accept: 'application/json' }
      const answer = await connection.request({ method: 'GET', path: below(path), query, headers, signal })
      return parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what) as T
    })
  }
  const made = async <T>(path: readonly string[], wanted: object, { signal }: CallOptions = {}): Promise<T> => {
    for (const step of path) checkPathId(step)
    const headers = { Accept: 'application/json', 'Content-Type': 'application/json' }
    const body = JSON.stringify(wanted)
    const answer = await connection.request({ method: 'POST', path: below(path), headers, body, signal })
    return parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what) as T
  }
  /** For operations that may be repeated with the same result. */
  const done = async <T>(
    method: 'POST' | 'PATCH' | 'DELETE',
    path: readonly string[],
    wanted?: object,
    { signal }: CallOptions = {},
  ): Promise<T> => {
    for (const step of path) checkPathId(step)
    const headers = { Accept: 'application/json', ...(wanted && { 'Content-Type': 'application/json' }) }
    const body = wanted && { body: JSON.stringify(wanted) }
    return retry.run(signal, async () => {
      const answer = await connection.request({ method, path: below(path), headers, ...body, signal })
      return parseJson(await answer.text(ANSWER_BYTES_MAX), answer.what) as T
    })
  }
  const gone = async (path: readonly string[], { signal }: CallOptions = {}): Promise<void> => {
    for (const step of path) checkPathId(step)
    await retry.run(signal, async () =>
      (await connection.request({ method: 'DELETE', path: below(path), signal })).cancel(),
    )
  }
  return { read, made, done, gone }
}
