export { type Client, type ClientOptions, createClient } from './client.ts'
export type { ConnectionOptions, Token } from './connection.ts'
export type { BasedText, CallOptions, DagObject, Fetch, Ids, ObjectText } from './types.ts'
export type { ObjectTexts } from './deltas.ts'
export type {
  DiffOptions,
  DiffResult,
  GraphOptions,
  Project,
  ReceiveOptions,
  SendOptions,
  SendResult,
} from './project.ts'
export type { UploadOptions, UploadProgress, UploadResult } from './upload.ts'
export type { UploadSource } from './upload-source.ts'
export type { ListOptions } from './list.ts'
export type { GraphInfo } from './graph-info.ts'
export type { GraphProgress, TransferOptions } from './graph-transfer.ts'
export type { DownloadJournal, KeptDownload } from './journal.ts'
export type { RetryOptions } from './retry.ts'
export { type CachedRoot, memoryCache, type MemoryCacheOptions, type ObjectCache } from './cache.ts'
export { contentId, withId } from './content-id.ts'
export { ClientError, type ClientErrorCode, type ClientErrorOptions } from './errors.ts'
export { serialize, type SerializeOptions } from './serializer/serialize.ts'
export { deserialize, type DeserializeOptions } from './serializer/deserialize.ts'
export { type ChunkOrigin, type InlineOrigin, type Origin, Origins } from './serializer/origins.ts'
export type { GraphShape } from './serializer/shape.ts'
