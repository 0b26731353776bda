import { StowageError } from './errors.ts'
import type { Account } from './events/account.ts'
import type { Flights } from './http/flights.ts'
import type { Limits } from './limits.ts'
import type { GraphStore } from './object/graph-store.ts'
import { parseHaveRoot } from './object/have-root.ts'
import { checkObjectId, checkProjectId, quoted } from './object/id.ts'
import { IdSet } from './object/id-set.ts'
import type { ObjectRecord } from './object/line.ts'
import { readObject, readRecords } from './read-object.ts'
import type { CallOptions } from './storage/backend.ts'
import { type UploadSummary, uploadObjects } from './upload.ts'

/** One project in process: everything that HTTP does, without HTTP and without access control. Throws `StowageError` as HTTP would answer it. */
export interface ProjectObjects {
  /** A JSON array of objects, plain or gzipped. All or nothing, durable when it resolves. */
  upload(
    source: AsyncIterable<Uint8Array>,
    type: 'application/json' | 'application/gzip',
    options?: CallOptions,
  ): Promise<UploadSummary>
  /** Which of the ids are held. */
  has(ids: readonly string[], options?: CallOptions): Promise<ReadonlySet<string>>
  /** One object without its children, `undefined` when it is not held. */
  single(id: string, options?: CallOptions): Promise<ObjectRecord | undefined>
  /**
   * The root and everything below it, in batches, the root first. `have` names roots as `<id>` or `<id>@<closure digest>` whose objects are left out.
   * Throws `not_found` when the root is not held. Returning early frees everything.
   */
  graph(
    root: string,
    options?: CallOptions & { readonly have?: readonly string[] },
  ): AsyncIterable<readonly ObjectRecord[]>
  /** Unreadable at once; space comes back later. Resolves also for a project that does not exist. */
  remove(): Promise<void>
}

export interface ProjectDeps {
  readonly store: GraphStore
  readonly ready: () => Promise<void>
  readonly remove: (projectId: string) => Promise<void>
  readonly flights: Flights
  readonly limits: Limits
  readonly openAccount: (projectId: string) => Account
}

/** Throws `invalid_id`. */
export function projectObjects(deps: ProjectDeps, projectId: string): ProjectObjects {
  checkProjectId(projectId)
  const { store, limits } = deps
  return {
    upload: (source, type, options) =>
      inFlight(deps, options, async (signal) => {
        const upload = { contentType: type, contentEncoding: undefined, contentLength: undefined, body: source }
        const account = deps.openAccount(projectId)
        return uploadObjects({ store, limits, projectId, account }, upload, signal).finally(() => account.end())
      }),
    has: (ids, options) => inFlight(deps, options, (signal) => heldOf(store, projectId, ids, signal)),
    single: (id, options) =>
      inFlight(deps, options, async (signal) => {
        const json = await readObject(store, projectId, id, signal)
        return json === undefined ? undefined : recordOf(id, json, signal)
      }),
    graph: (root, options = {}) => graphRecords(deps, projectId, root, options),
    remove: () => inFlight(deps, undefined, () => deps.remove(projectId)),
  }
}

/** A call counts as under way from here on: closing waits for it, and aborts it in the end. */
async function inFlight<T>(
  deps: ProjectDeps,
  options: CallOptions | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  deps.flights.checkOpen()
  const flight = deps.flights.begin(options?.signal)
  try {
    await deps.ready()
    flight.signal.throwIfAborted()
    return await work(flight.signal)
  } finally {
    flight.end()
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

async function* graphRecords(
  deps: ProjectDeps,
  projectId: string,
  root: string,
  options: CallOptions & { readonly have?: readonly string[] },
): AsyncGenerator<readonly ObjectRecord[]> {
  deps.flights.checkOpen()
  checkObjectId(root)
  const have = (options.have ?? []).map((value) => parseHaveRoot(value))
  const flight = deps.flights.begin(options.signal)
  const { signal } = flight
  try {
    await deps.ready()
    const selection = await deps.store.closure(projectId, root, { signal, ...(have.length === 0 ? {} : { have }) })
    if (selection === undefined)
      throw new StowageError('not_found', `there is no object ${quoted(root)} in this project`)
    const account = deps.openAccount(projectId)
    account.selected(selection)
    try {
      yield* readRecords(account.counting(selection.lines({ signal })), signal)
    } finally {
      account.end()
      selection.release()
    }
  } finally {
    flight.end()
  }
}

async function recordOf(id: string, json: Uint8Array, signal: AbortSignal): Promise<ObjectRecord | undefined> {
  for await (const [record] of readRecords(oneLine(id, json), signal)) return record
  return undefined
}

async function* oneLine(id: string, json: Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.concat([Buffer.from(`${id}\t`), json, Buffer.from('\n')])
}
