import { expectAssignable, expectError, expectType } from 'tsd'
import type { ObjectStore, StorageBackend } from 'stowage'
import {
  type BlobStorageDriver,
  type BlobStore,
  combinedBackend,
  type CommitResult,
  CORE_RECORD_LIMITS,
  guardedBackend,
  guardedBlobs,
  guardedRecords,
  isStorageError,
  type RecordLimits,
  type RecordStorageDriver,
  type RecordStore,
  type StorageDriver,
} from 'stowage/storage'
import { filesystemBackend, filesystemBlobs } from 'stowage/filesystem'
import { levelBackend, levelRecords } from 'stowage/level'
import { Pool } from 'pg'
import { postgresRecords } from 'stowage/postgres'
import { memoryBackend, memoryBlobs, memoryRecords } from 'stowage/memory'

// Backends are created without being opened.
expectType<StorageBackend>(memoryBackend())
expectAssignable<StorageBackend>(levelBackend({ path: 'folder' }))
expectAssignable<StorageBackend>(filesystemBackend({ path: 'folder' }))
expectError(filesystemBackend())
expectError(levelBackend({}))

// Any two halves make a storage.
declare const records: RecordStore
declare const blobs: BlobStore
expectAssignable<StorageBackend>({ records, blobs, close: async () => undefined })
expectError<StorageBackend>({ records, close: async () => undefined })

const key = new Uint8Array()
expectType<Promise<readonly (Uint8Array | undefined)[]>>(records.getMany([key]))
expectType<Promise<CommitResult>>(records.commit({ put: [{ key, value: key }], expect: [{ key, value: undefined }] }))
expectError(records.getMany(['text']))
expectType<Promise<Uint8Array>>(blobs.read('project/pack', 0, 10))

// Halves come from different places.
expectType<RecordStore>(levelRecords({ path: 'folder' }))
expectType<BlobStore>(filesystemBlobs({ path: 'folder' }))
expectType<StorageBackend>(combinedBackend({ records, blobs }))
expectType<StorageBackend>(combinedBackend({ records: memoryRecords(), blobs: memoryBlobs() }))
expectType<RecordStore>(postgresRecords({ connectionString: 'postgres://localhost/stowage', schema: 'stowage' }))
expectType<RecordStore>(postgresRecords({ pool: new Pool() }))
expectError(postgresRecords({ pool: 'postgres://localhost/stowage' }))
expectError(postgresRecords())
expectError(combinedBackend({ records }))
expectError(combinedBackend({ records: blobs, blobs: records }))
declare const recordDriver: RecordStorageDriver
declare const blobDriver: BlobStorageDriver
expectType<RecordStore>(guardedRecords(recordDriver))
expectType<BlobStore>(guardedBlobs(blobDriver))
expectError(guardedRecords(blobDriver))
expectError(guardedBlobs(recordDriver))

// A driver needs to open; all else has a default. A store of its own is a driver, too.
declare const driver: StorageDriver
expectType<StorageBackend>(guardedBackend(driver))
expectType<StorageBackend>(guardedBackend({ open: async () => ({ records, blobs, close: async () => undefined }) }))
expectError(guardedBackend({ open: async () => ({ records, close: async () => undefined }) }))
expectError(guardedBackend({ limits: { keyBytesMax: 1_000 }, open: driver.open }))
expectType<RecordLimits>(CORE_RECORD_LIMITS)
expectType<boolean>(isStorageError(new Error(), 'BlobNotFoundError'))
expectError(isStorageError(new Error(), 'NoSuchError'))

// A store of one's own needs three methods.
expectAssignable<ObjectStore>({
  put: async () => ({ inserted: 0 }),
  has: async (_projectId: string, ids: readonly string[]) => ids.map(() => false),
  get: async function* () {},
})
expectError<ObjectStore>({ put: async () => ({ inserted: 0 }), has: async () => [] })
