/**
 * The storage seam, for your own backends: the interfaces, their limits and errors, and the guard that makes a backend of a driver.
 * `stowage/conformance` proves a backend; docs/backends.md shows how to write one.
 *
 * @module stowage/storage
 */

export { BLOB_NAME_BYTES_MAX, BLOB_READ_BYTES_MAX, CORE_RECORD_LIMITS } from './backend.ts'
export type {
  BlobInfo,
  BlobStore,
  CallOptions,
  Change,
  CommitResult,
  Conflict,
  Entry,
  Expectation,
  PutOptions,
  ReadOptions,
  RangeBounds,
  RecordLimits,
  RecordStore,
  StorageBackend,
} from './backend.ts'
export { combinedBackend, type CombinedHalves } from './combined-backend.ts'
export type {
  BlobDriver,
  BlobStorageDriver,
  OpenedBlobs,
  OpenedDriver,
  OpenedRecords,
  RecordDriver,
  RecordStorageDriver,
  StorageDriver,
} from './driver.ts'
export { guardedBackend, guardedBlobs, guardedRecords } from './guard.ts'
export {
  BlobExistsError,
  BlobNotFoundError,
  BlobRangeError,
  isStorageError,
  StorageClosedError,
  type StorageErrorName,
  StoragePoisonedError,
} from './storage-errors.ts'
