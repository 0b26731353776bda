/**
 * The client, for Node and browsers: uploads, downloads, and plain values as object graphs.
 *
 * @module stowage/client
 *
 * @example
 * import { ClientError, createClient } from 'stowage/client'
 *
 * const client = createClient({ url: 'https://models.example', token: async () => 'the token', retry: false })
 * const project = client.project('demo')
 * try {
 *   const { root } = await project.send({ name: 'House', '@walls': [{ height: 3 }] })
 *   const house = await project.receive<{ name: string }>(root)
 *   console.log(house.name)
 * } catch (error) {
 *   if (!(error instanceof ClientError)) throw error
 *   console.error(error.code, error.statusCode, error.isRetryable)
 * }
 */

export { type Client, type ClientOptions, createClient } from './client.ts'
export type { ConnectionOptions, Token } from './http/connection.ts'
export type { TextWithBase, CallOptions, DagObject, Fetch, Ids, ObjectText } from './common/types.ts'
export type { ObjectTexts } from './download/deltas.ts'
export type {
  HasOptions,
  HasResult,
  GraphOptions,
  Project,
  ReceiveOptions,
  SendOptions,
  SendResult,
} from './project.ts'
export type { UploadOptions, UploadProgress, UploadResult } from './upload/upload-batches.ts'
export type { UploadSource } from './upload/upload-source.ts'
export type { ListOptions } from './download/list.ts'
export type { GraphInfo } from './download/graph-info.ts'
export type { GraphProgress, TransferOptions } from './download/graph-transfer.ts'
export type { DownloadJournal, PartialDownload } from './download/journal.ts'
export type { RetryOptions } from './http/retry.ts'
export { type CachedRoot, memoryCache, type MemoryCacheOptions, type ObjectCache } from './download/cache.ts'
export { contentId, withId } from './common/content-id.ts'
export {
  CLIENT_ERROR_STATUS,
  ERROR_STATUS,
  type ErrorBody,
  isStowageError,
  type ServiceErrorCode,
  StowageError,
  type StowageErrorCode,
  type StowageErrorOptions,
} from '../errors.ts'
export { ClientError, type ClientErrorOptions } from './common/errors.ts'
export { serialize, type SerializeOptions } from './serializer/serialize.ts'
export { deserialize, type DeserializeOptions } from './serializer/deserialize.ts'
export { type ChunkOrigin, type InlineOrigin, type Origin, Origins } from './serializer/origins.ts'
export type { GraphConventions } from './serializer/shape.ts'
export type {
  ProjectResources,
  RemoteModels,
  RemotePins,
  RemoteRuns,
  RemoteVersions,
} from './resources/project-resources.ts'
export type {
  NewRemotePin,
  NewRemoteVersion,
  DeletableFilter as RemoteDeletableFilter,
  RemoteModel,
  RemoteModelChange,
  Page as RemotePage,
  PageRequest as RemotePageRequest,
  RemotePin,
  RemoteRetentionRule,
  RemoteRun,
  RunFilter as RemoteRunFilter,
  RemoteRunStatus,
  RemoteUsage,
  RemoteVersion,
  CollectObjectsRequest,
  CollectRequest,
  CompactRequest,
  PruneRequest,
  PruneResult,
  RemoteChosenReport,
  RemoteCollectedAmount,
  RemoteCollectionProgress,
  RemoteCollectionReport,
  RemoteCompactionProgress,
  RemoteCompactionReport,
  RemoteDamagedPack,
  RemoteObjectAmount,
  RemoteUnreferencedObject,
} from './resources/types.ts'
export type { ProgressOptions, RemoteUpkeep, UnreferencedFilter } from './resources/upkeep.ts'
