/** Aborting rejects the call with the signal's reason and frees what it held. */
export interface CallOptions {
  readonly signal?: AbortSignal
}

export interface Entry {
  readonly key: Uint8Array
  readonly value: Uint8Array
}

/** What a record store can take. The core needs keys of 1,000 bytes, values of 65,536 bytes, and commits of 25 entries and 1 MiB. */
export interface RecordLimits {
  readonly keyBytes: number
  readonly valueBytes: number
  readonly commitEntries: number
  readonly commitBytes: number
}

/** Keys from `gte` up to, not including, `lt`, in bytewise order. */
export interface RangeBounds {
  readonly gte: Uint8Array
  readonly lt: Uint8Array
  readonly limit?: number
  readonly reverse?: boolean
}

/** `value: undefined` expects that the key is absent. */
export interface Expectation {
  readonly key: Uint8Array
  readonly value: Uint8Array | undefined
}

export interface Change {
  readonly put?: readonly Entry[]
  readonly remove?: readonly Uint8Array[]
  readonly expect?: readonly Expectation[]
}

/** `conflicts` holds the indices of the expectations that did not hold. */
export type CommitResult = { readonly ok: true } | { readonly ok: false; readonly conflicts: readonly number[] }

/**
 * A place for small ordered records. Methods throw whatever the engine throws; the core wraps it once and keeps the cause.
 * Buffers that are passed in belong to the store until the call resolves, buffers that come out belong to the caller.
 */
export interface RecordStore {
  readonly limits: RecordLimits
  /** In the order of `keys`, duplicates allowed. Sees every write that has resolved, from any process. */
  getMany(keys: readonly Uint8Array[], options?: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /** In bytewise order, no snapshot: an entry that is there throughout is seen exactly once. Returning early frees everything. */
  range(bounds: RangeBounds, options?: CallOptions): AsyncIterable<readonly Entry[]>
  /**
   * Put if absent: any number of entries, each for itself, repeatable, durable when it resolves.
   * In the order of `entries`: `undefined` where it was put, else the value that was there. Of two entries with one key the first is put.
   */
  insertMany(entries: readonly Entry[], options?: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /** All or nothing, durable when it resolves, serializable against other commits and inserts. A lost expectation is a result, not an error. */
  commit(change: Change, options?: CallOptions): Promise<CommitResult>
  close(): Promise<void>
}

export interface BlobInfo {
  readonly name: string
  readonly size: number
  readonly modifiedAtMs: number
}

/** A place for large immutable blobs. A blob is whole or absent, and never changes. Names are ASCII: `[a-z0-9-]` in segments divided by `/`. */
export interface BlobStore {
  /** The size of read that suits the medium: 1 MiB on disk, 8 MiB on S3. */
  readonly readBytesPreferred: number
  /** Durable when it resolves. A throw in `content` or an abort leaves nothing. A name that exists is an error. */
  put(name: string, content: AsyncIterable<Uint8Array>, options?: CallOptions & { readonly sizeHint?: number }): Promise<{ readonly size: number }>
  /** Exactly `end - start` bytes (8 MiB at most) in one buffer, or an error; `BlobNotFoundError` when there is no such blob. */
  read(name: string, start: number, end: number, options?: CallOptions): Promise<Uint8Array>
  /** Absent names are fine. Durable when it resolves. */
  remove(names: readonly string[]): Promise<void>
  /** Blobs whose name starts with `prefix`, in no promised order; a blob that is there throughout is seen exactly once. */
  list(prefix: string, options?: CallOptions): AsyncIterable<readonly BlobInfo[]>
  close(): Promise<void>
}

/** Two halves that make one storage. Any two combine. */
export interface StorageBackend {
  readonly records: RecordStore
  readonly blobs: BlobStore
  close(): Promise<void>
}

/** The largest read that the core asks of a `BlobStore`. */
export const BLOB_READ_BYTES_MAX: number = 8 * 1_048_576

/** Thrown by `BlobStore.read` for a name that does not exist. */
export class BlobNotFoundError extends Error {
  override readonly name = 'BlobNotFoundError'
  constructor(blobName: string) {
    super(`there is no blob named ${blobName}`)
  }
}

/** Thrown by `BlobStore.put` for a name that exists already. */
export class BlobExistsError extends Error {
  override readonly name = 'BlobExistsError'
  constructor(blobName: string) {
    super(`a blob named ${blobName} exists already`)
  }
}
