import type { CallOptions } from '../common/types.ts'
import { readLongWork } from '../http/long-work.ts'
import type { Remote } from '../http/remote.ts'
import type { Page, PageRequest } from './types.ts'
import type {
  ChosenReport,
  CollectionProgress,
  CollectionReport,
  CollectObjectsRequest,
  CollectRequest,
  CompactionProgress,
  CompactionReport,
  CompactRequest,
  ObjectAmount,
  UnreferencedObject,
} from '../../object/upkeep-wire-types.ts'

/** How a long call tells how far it is. */
export interface ProgressOptions<P> extends CallOptions {
  /** Called now and then. */
  readonly onProgress?: ((progress: P) => void) | undefined
}

/** Which part of the unreferenced objects. */
export interface UnreferencedFilter extends PageRequest {
  /** Only objects that no other object refers to. */
  readonly tops?: boolean
}

/**
 * Collection and compaction of a project, on a server that has them. The calls last as long as their work; a call whose
 * connection breaks is repeated and continues the work. Needs the right to write, `unreferenced` that to read.
 */
export interface RemoteUpkeep {
  /**
   * Condemns the objects that no version, no pin and no young object leads to, and frees those that were condemned long
   * enough. A project with neither a version nor a pin is never collected. Throws `not_found` for a project without
   * objects.
   */
  collect(request?: CollectRequest & ProgressOptions<CollectionProgress>): Promise<CollectionReport>
  /**
   * Undo: condemned objects that were not freed are live again. Resolves to what it restored. Throws `not_found` for a
   * project without objects.
   */
  restoreCollected(options?: ProgressOptions<CollectionProgress>): Promise<ObjectAmount>
  /** The objects that no version and no pin leads to, in the order in which they are stored. */
  unreferenced(request?: UnreferencedFilter & CallOptions): Promise<Page<UnreferencedObject>>
  /** Condemns chosen objects, 1,000 at most, with the objects below them that nothing else leads to. */
  collectObjects(
    ids: readonly string[],
    request?: Omit<CollectObjectsRequest, 'ids'> & ProgressOptions<CollectionProgress>,
  ): Promise<ChosenReport>
  /** Merges small packs and packs with much that was collected. */
  compact(request?: CompactRequest & ProgressOptions<CompactionProgress>): Promise<CompactionReport>
}

type Read = <T>(path: readonly string[], request?: UnreferencedFilter & CallOptions) => Promise<T>

export function upkeepOf({ connection, retry, projectId }: Remote, read: Read): RemoteUpkeep {
  const long = <R>(
    path: string,
    wanted: object | undefined,
    { signal, onProgress }: ProgressOptions<never>,
  ): Promise<R> =>
    retry.run(signal, async () => {
      const answer = await connection.request({
        method: 'POST',
        path: ['api', 'v1', 'projects', projectId, ...path.split('/')],
        headers: { Accept: 'application/x-ndjson', ...(wanted && { 'Content-Type': 'application/json' }) },
        ...(wanted && { body: JSON.stringify(wanted) }),
        signal,
      })
      return readLongWork<R>(answer, onProgress)
    })
  return {
    collect: ({ signal, onProgress, ...wanted } = {}) => long('collect', wanted, { signal, onProgress }),
    restoreCollected: (options = {}) => long('restore-collected', undefined, options),
    unreferenced: (request) => read(['unreferenced'], request),
    collectObjects: (ids, { signal, onProgress, ...wanted } = {}) =>
      long('unreferenced/collect', { ids, ...wanted }, { signal, onProgress }),
    compact: ({ signal, onProgress, ...wanted } = {}) => long('compact', wanted, { signal, onProgress }),
  }
}
