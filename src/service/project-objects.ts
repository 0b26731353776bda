import type { DeflatePool } from '../compression/deflate-pool.ts'
import { parseContentType } from '../decode/header-value.ts'
import type { UploadSource } from '../decode/wire.ts'
import { emit } from '../emit/emit.ts'
import type { Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { RequestTrace } from '../events/request-trace.ts'
import { Yielder } from '../async/yielder.ts'
import type { InFlightRequests } from '../async/in-flight-requests.ts'
import type { Limits } from '../limits.ts'
import { ANSWER_BYTES } from '../memory/answer-memory.ts'
import type { MemoryBudget, MemoryLease } from '../memory/memory-budget.ts'
import type { GraphStore } from '../object/graph-store.ts'
import { parseHaveRoot } from '../object/have-root.ts'
import { checkObjectId, checkProjectId, quoted } from '../object/id.ts'
import { IdSet } from '../object/id-set.ts'
import type { ObjectRecord } from '../object/line.ts'
import type { Selection } from '../object/selection.ts'
import { readObject, readRecords } from '../operations/read-object.ts'
import type { CallOptions } from '../storage/backend.ts'
import {
  type ByteEncoding,
  type GraphCallOptions,
  type ObjectIds,
  type ProjectStreams,
  projectStreams,
} from './project-streams.ts'
import type { ProjectUpkeep } from './project-upkeep.ts'
import type { UploadSummary } from '../object/wire-types.ts'
import { uploadObjects } from '../operations/upload-objects.ts'

/**
 * One project in process: everything that HTTP does, without HTTP and without access control. Throws `StowageError` as
 * HTTP would answer it.
 */
export interface ProjectObjects extends ProjectStreams, ProjectUpkeep {
  /** A JSON array of objects, plain or gzipped. All or nothing, durable when it resolves. */
  upload(
    source: AsyncIterable<Uint8Array>,
    type: 'application/json' | 'application/gzip',
    options?: CallOptions,
  ): Promise<UploadSummary>
  /** Which of the ids are held. */
  has(ids: readonly string[], options?: CallOptions): Promise<ReadonlySet<string>>
  /** One object without its children, `undefined` when it is not held. */
  get(id: string, options?: CallOptions): Promise<ObjectRecord | undefined>
  /**
   * The root and everything below it, in batches, the root first. `have` names roots as `<id>` or `<id>@<closure
   * digest>` whose objects are left out. Throws `not_found` when the root is not held. Returning early frees
   * everything.
   */
  graph(root: string, options?: GraphCallOptions): AsyncIterable<readonly ObjectRecord[]>
  /** Unreadable at once; the space is freed later. Resolves also for a project that does not exist. */
  remove(): Promise<void>
}

export interface ProjectDeps {
  readonly store: GraphStore
  readonly ready: () => Promise<void>
  readonly remove: (projectId: string) => Promise<void>
  readonly upkeepOf: (projectId: string) => ProjectUpkeep
  readonly inFlightRequests: InFlightRequests
  readonly limits: Limits
  readonly compressor: DeflatePool
  readonly memory: MemoryBudget
  readonly environment: Environment
  readonly startTrace: (projectId: string) => RequestTrace
}

/** The memory of an id in a set of ids, with its place in the response. */
const BYTES_PER_ID = 64
/** The number of ids of a streamed list for which memory is leased at once. */
const IDS_PER_HOLD = 1_000

/** Throws `invalid_id`. */
export function projectObjects(deps: ProjectDeps, projectId: string): ProjectObjects {
  checkProjectId(projectId)
  const { store, limits, environment } = deps
  const uploadFrom = (source: UploadSource, options?: CallOptions): Promise<UploadSummary> =>
    inFlight(deps, options, projectId, async (signal, memory) => {
      const trace = deps.startTrace(projectId)
      return uploadObjects({ store, limits, projectId, trace, memory, environment }, source, signal).finally(() =>
        trace.end(),
      )
    })
  return {
    ...projectStreams({
      upload: uploadFrom,
      graph: (root, options) => graphRecords(deps, projectId, root, options),
      objects: (ids, options) => withSelection(deps, projectId, options, listOf(deps, projectId, ids), recordsOf(deps)),
      graphBytes: (root, encoding, options) =>
        withSelection(deps, projectId, options, graphOf(deps, projectId, root, options), bytesOf(deps, encoding)),
      objectsBytes: (ids, encoding, options) =>
        withSelection(deps, projectId, options, listOf(deps, projectId, ids), bytesOf(deps, encoding)),
    }),
    upload: (source, type, options) =>
      uploadFrom(
        { contentType: parseContentType(type), contentEncoding: undefined, contentLength: undefined, body: source },
        options,
      ),
    has: (ids, options) =>
      inFlight(deps, options, projectId, async (signal, memory) => {
        await memory.hold(ids.length * BYTES_PER_ID)
        return heldOf(store, projectId, ids, signal)
      }),
    get: (id, options) =>
      inFlight(deps, options, projectId, async (signal, memory) => {
        const json = await readObject(store, projectId, id, { signal, memory })
        return json === undefined ? undefined : recordOf(id, json, { signal, environment })
      }),
    graph: (root, options = {}) => graphRecords(deps, projectId, root, options),
    ...deps.upkeepOf(projectId),
    remove: () => inFlight(deps, undefined, projectId, () => deps.remove(projectId)),
  }
}

/** A call counts as under way from here on: closing waits for it, and aborts it in the end. */
async function inFlight<T>(
  deps: ProjectDeps,
  options: CallOptions | undefined,
  projectId: string,
  work: (signal: AbortSignal, memory: MemoryLease) => Promise<T>,
): Promise<T> {
  deps.inFlightRequests.checkOpen()
  const inFlightRequest = deps.inFlightRequests.begin(options?.signal)
  const { signal, abort } = inFlightRequest
  const memory = deps.memory.open({ signal, revoke: abort, party: { principal: '', projectId } })
  try {
    await deps.ready()
    signal.throwIfAborted()
    return await work(signal, memory)
  } finally {
    memory.release()
    inFlightRequest.end()
  }
}

async function heldOf(
  store: GraphStore,
  projectId: string,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const set = new IdSet(ids.length)
  for (const id of ids) set.add(checkObjectId(id))
  const held = await store.has(projectId, set, { signal })
  return new Set(ids.filter((id) => held[set.find(checkObjectId(id))] === 1))
}

function graphRecords(
  deps: ProjectDeps,
  projectId: string,
  root: string,
  options: GraphCallOptions,
): AsyncGenerator<readonly ObjectRecord[]> {
  return withSelection(deps, projectId, options, graphOf(deps, projectId, root, options), recordsOf(deps))
}

type Select = (signal: AbortSignal, memory: MemoryLease) => Promise<Selection>

/** Throws `invalid_id`, and later `not_found`. */
function graphOf({ store }: ProjectDeps, projectId: string, root: string, { have = [] }: GraphCallOptions): Select {
  return async (signal, memory) => {
    checkObjectId(root)
    const known = have.map((value) => parseHaveRoot(value))
    const selection = await store.closure(projectId, root, {
      signal,
      memory,
      ...(known.length === 0 ? {} : { have: known }),
    })
    if (selection !== undefined) return selection
    throw new StowageError('not_found', `there is no object ${quoted(root)} in this project`)
  }
}

/** Throws later `invalid_id`. */
function listOf({ store, environment }: ProjectDeps, projectId: string, ids: ObjectIds): Select {
  return async (signal, memory) => {
    const set = new IdSet()
    const yielder = new Yielder(environment)
    let heldIds = 0
    for await (const id of ids) {
      signal.throwIfAborted()
      if (set.size === heldIds) {
        await memory.hold(IDS_PER_HOLD * BYTES_PER_ID, 'id_list_too_large')
        heldIds += IDS_PER_HOLD
      }
      set.add(checkObjectId(id))
      await yielder.due()
    }
    return store.select(projectId, set, { signal })
  }
}

type Read<T> = (selection: Selection, trace: RequestTrace, signal: AbortSignal) => AsyncIterable<T>

function recordsOf({ environment }: ProjectDeps): Read<readonly ObjectRecord[]> {
  return (selection, trace, signal) => readRecords(trace.counting(selection.lines({ signal })), signal, environment)
}

function bytesOf({ compressor, environment }: ProjectDeps, encoding: ByteEncoding): Read<Uint8Array> {
  return (selection, trace, signal) => trace.counting(emit(selection, encoding, { signal, compressor, environment }))
}

/** The iteration over a selection. The call counts as under way until the iteration ends. */
async function* withSelection<T>(
  deps: ProjectDeps,
  projectId: string,
  options: CallOptions,
  select: Select,
  read: Read<T>,
): AsyncGenerator<T> {
  deps.inFlightRequests.checkOpen()
  const inFlightRequest = deps.inFlightRequests.begin(options.signal)
  const { signal, abort } = inFlightRequest
  const memory = deps.memory.open({ signal, revoke: abort, party: { principal: '', projectId } })
  try {
    await deps.ready()
    const selection = await select(signal, memory)
    const trace = deps.startTrace(projectId)
    trace.selected(selection)
    try {
      await (selection.lease?.(memory) ?? memory.hold(ANSWER_BYTES))
      yield* read(selection, trace, signal)
    } finally {
      trace.end()
      selection.release()
    }
  } finally {
    memory.release()
    inFlightRequest.end()
  }
}

async function recordOf(
  id: string,
  json: Uint8Array,
  { signal, environment }: { readonly signal: AbortSignal; readonly environment: Environment },
): Promise<ObjectRecord | undefined> {
  for await (const [record] of readRecords(oneLine(id, json), signal, environment)) return record
  return undefined
}

async function* oneLine(id: string, json: Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.concat([Buffer.from(`${id}\t`), json, Buffer.from('\n')])
}
