import type { ObjectCache } from './download/cache.ts'
import { CachedGraph, cacheAsBases, knownRoots, scopeOf } from './download/cached-graph.ts'
import { checkCount, CONCURRENCY_MAX, inGroups, runWorkers } from './common/concurrency.ts'
import { isWholeTextOf } from './common/content-id.ts'
import { ClientError, quoted } from './common/errors.ts'
import { fetchInfo, type GraphInfo } from './download/graph-info.ts'
import { GraphTransfer, type TransferOptions } from './download/graph-transfer.ts'
import { type ListOptions, listTexts } from './download/list.ts'
import { checkPathId, fetchHeld, fetchObject, IDS_PER_REQUEST, type Remote } from './http/remote.ts'
import { type ProjectResources, projectResources } from './resources/project-resources.ts'
import { deserialize, type DeserializeOptions } from './serializer/deserialize.ts'
import type { Origins } from './serializer/origins.ts'
import { serialize, serializeWithBases, type SerializeOptions } from './serializer/serialize.ts'
import type { CallOptions, DagObject, Ids, ObjectText } from './common/types.ts'
import { upload, type UploadOptions, type UploadResult } from './upload/upload-batches.ts'
import type { UploadSource } from './upload/upload-source.ts'

/** Options for downloading a graph. */
export interface GraphOptions extends TransferOptions {
  /** Leave the client's cache alone. */
  readonly cache?: false
}

/** Options for asking which ids are held. */
export interface HasOptions extends CallOptions {
  /** Requests at a time, of a thousand ids each. 4 by default, 1,000 at most. */
  readonly concurrency?: number
}

/** Which of a list of ids the project holds. */
export interface HasResult {
  /** The ids of objects that the project holds. */
  readonly held: ReadonlySet<string>
  /** Each once, in the order of the ids that were asked for. */
  readonly missing: readonly string[]
}

/** Options for sending a value. */
export interface SendOptions extends UploadOptions, Omit<SerializeOptions, 'origins'> {}

/** The outcome of sending a value. */
export interface SendResult extends UploadResult {
  /** The id of the value. */
  readonly root: string
}

/** Options for receiving a value. */
export interface ReceiveOptions extends Omit<GraphOptions, 'have'>, Omit<DeserializeOptions, 'origins'> {}

/**
 * The objects of one project. Every call rejects with `ClientError`, or with the reason of its signal; errors of a
 * source, a callback, a cache, a journal or the token function pass unchanged. Iterables ask the server when they are
 * iterated, and free everything when that ends early.
 */
export interface Project extends ProjectResources {
  /** The id of the project. */
  readonly id: string
  /** Uploads the objects that the server lacks, in batches, and resolves when all of them are durable. */
  upload(objects: UploadSource, options?: UploadOptions): Promise<UploadResult>
  /** Which of these ids the server holds. Needs the right to write. */
  has(ids: Ids, options?: HasOptions): Promise<HasResult>
  /** One object without its children, `undefined` when it is not held. */
  get<T extends { readonly id: string } = DagObject>(id: string, options?: CallOptions): Promise<T | undefined>
  /** The same as its text, character for character. */
  getText(id: string, options?: CallOptions): Promise<ObjectText | undefined>
  /** The objects of a list that are held, in batches, each once, in the order of their arrival. */
  list<T extends { readonly id: string } = DagObject>(ids: Ids, options?: ListOptions): AsyncIterable<readonly T[]>
  /** The same as texts, character for character. */
  listTexts(ids: Ids, options?: ListOptions): AsyncIterable<readonly ObjectText[]>
  /**
   * An object and everything below it, in batches, each once, the root first. A broken download is resumed where it
   * broke.
   */
  graph<T extends { readonly id: string } = DagObject>(
    root: string,
    options?: GraphOptions,
  ): AsyncIterable<readonly T[]>
  /** The same as texts, character for character. */
  graphTexts(root: string, options?: GraphOptions): AsyncIterable<readonly ObjectText[]>
  /** The size of a graph and whether all of it is held, without the graph; `undefined` if its root is not held. */
  graphInfo(root: string, options?: CallOptions): Promise<GraphInfo | undefined>
  /** Turns a value into objects (see `serialize`) and uploads the ones that the server lacks. */
  send(value: object, options?: SendOptions): Promise<SendResult>
  /**
   * Downloads a graph and makes one value of it (see `deserialize`). When it is sent again, by the same client,
   * unchanged parts keep their ids.
   */
  receive<T extends object = DagObject>(root: string, options?: ReceiveOptions): Promise<T>
}

export interface ProjectParts {
  readonly remote: Remote
  readonly cache: ObjectCache | undefined
  readonly origins: Origins
}

const CONCURRENCY = 4

export function createProject(parts: ProjectParts): Project {
  const { remote, cache, origins } = parts
  return {
    id: remote.projectId,
    ...projectResources(remote),
    upload: (objects, options = {}) => upload(remote, objects, options),
    has: (ids, options = {}) => has(remote, ids, options),
    get: async <T>(id: string, options: CallOptions = {}) => {
      const object = await getText(remote, cache, id, options)
      return object === undefined ? undefined : (parsed(object) as T)
    },
    getText: (id, options = {}) => getText(remote, cache, id, options),
    list: <T>(ids: Ids, options: ListOptions = {}) => parsedAll<T>(listTexts(remote, ids, options)),
    listTexts: (ids, options = {}) => listTexts(remote, ids, options),
    graph: <T>(root: string, options: GraphOptions = {}) => parsedAll<T>(graphTexts(parts, root, options)),
    graphTexts: (root, options = {}) => graphTexts(parts, root, options),
    graphInfo: (root, options = {}) => fetchInfo(remote, root, options),
    send: (value, options = {}) => send(parts, value, options),
    receive: <T extends object>(root: string, options: ReceiveOptions = {}) =>
      deserialize<T>(graphTexts(parts, root, options), root, { ...options, origins }),
  }
}

async function getText(
  remote: Remote,
  cache: ObjectCache | undefined,
  id: string,
  { signal }: CallOptions,
): Promise<ObjectText | undefined> {
  signal?.throwIfAborted()
  checkPathId(id)
  if (cache === undefined) return fetchObject(remote, id, signal)
  const [json] = await cache.getMany(scopeOf(remote), [id])
  if (json !== undefined && isWholeTextOf({ id, json })) return { id, json }
  const object = await fetchObject(remote, id, signal)
  if (object !== undefined) await cache.putMany(scopeOf(remote), [object])
  return object
}

async function has(remote: Remote, ids: Ids, options: HasOptions): Promise<HasResult> {
  const asked = new Set<string>()
  const held = new Set<string>()
  const groups = inGroups(noted(ids, asked), IDS_PER_REQUEST)
  try {
    await runWorkers(
      checkCount('concurrency', options.concurrency ?? CONCURRENCY, CONCURRENCY_MAX),
      options.signal,
      async (signal) => {
        for (let next = await groups.next(); next.done !== true; next = await groups.next()) {
          for (const id of await fetchHeld(remote, next.value, signal)) held.add(id)
        }
      },
    )
  } finally {
    groups.return(undefined).catch(() => undefined)
  }
  return { held, missing: [...asked].filter((id) => !held.has(id)) }
}

async function* noted(ids: Ids, seen: Set<string>): AsyncGenerator<string> {
  for await (const id of ids) {
    if (seen.has(id)) continue
    seen.add(id)
    yield id
  }
}

async function* graphTexts(
  { remote, cache }: ProjectParts,
  root: string,
  options: GraphOptions,
): AsyncGenerator<readonly ObjectText[]> {
  if (cache === undefined || options.cache === false) {
    yield* new GraphTransfer(remote, root, options).batches()
  } else if (options.have === undefined || options.have.length === 0) {
    yield* new CachedGraph(remote, cache, root, options).batches()
  } else {
    const scope = scopeOf(remote)
    const transfer = new GraphTransfer(remote, root, {
      bases: cacheAsBases(cache, scope),
      ...options,
      have: await knownRoots(cache, scope, options.have),
    })
    for await (const batch of transfer.batches()) {
      await cache.putMany(scope, batch)
      yield batch
    }
  }
}

/** With a cache, received objects that changed are sent as deltas on their earlier form. */
async function send(
  { remote, cache, origins }: ProjectParts,
  value: object,
  options: SendOptions,
): Promise<SendResult> {
  const settings = { ...options, origins }
  const objects =
    cache === undefined
      ? serialize(value, settings)
      : serializeWithBases(value, settings, cacheAsBases(cache, scopeOf(remote)))
  const result = await upload(remote, objects, options)
  return { ...result, root: result.lastId as string }
}

async function* parsedAll<T>(batches: AsyncIterable<readonly ObjectText[]>): AsyncGenerator<readonly T[]> {
  for await (const batch of batches) yield batch.map((object) => parsed(object) as T)
}

/** Throws `invalid_answer` for anything but an object with this id. */
function parsed({ id, json }: ObjectText): unknown {
  try {
    const value = JSON.parse(json) as { readonly id?: unknown } | null
    if (value?.id === id) return value
  } catch (cause) {
    throw new ClientError('invalid_answer', `the text of object ${quoted(id)} is not JSON`, { cause })
  }
  throw new ClientError('invalid_answer', `the text of object ${quoted(id)} is not that of an object with this id`)
}
