/** Aborting rejects the call with the signal's reason and frees its resources. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the reason of the signal. */
  readonly signal?: AbortSignal
}

/** What a caller may offer with a read of a blob. */
export interface ReadOptions extends CallOptions {
  /**
   * Memory of exactly as many bytes as are read. The store may read into it and return it, or ignore it and return
   * another buffer. The caller must not touch it before the call has resolved, and never again if the call rejects: a
   * read may still be under way.
   */
  readonly into?: Uint8Array
}

/** Facts that a caller may give about the blob that it puts. */
export interface PutOptions extends CallOptions {
  /** About how many bytes the content will have. It may be wrong. */
  readonly sizeHintBytes?: number
}

/** One record: a key and its value, as bytes. */
export interface Entry {
  /** The key. */
  readonly key: Uint8Array
  /** The value. */
  readonly value: Uint8Array
}

/**
 * The capacity of a record store, at least `CORE_RECORD_LIMITS`. A call beyond a limit rejects with a `RangeError` and
 * changes nothing.
 */
export interface RecordLimits {
  /** Keys hold from 1 to `keyBytesMax` bytes. */
  readonly keyBytesMax: number
  /** Values hold from 0 to `valueBytesMax` bytes. */
  readonly valueBytesMax: number
  /** Keys that one commit may name, each counted once: put, removed or expected. */
  readonly commitEntriesMax: number
  /** Bytes of all keys and values of one commit, those of the expectations included. */
  readonly commitBytesMax: number
}

/** The capacity that the core needs of every record store. The conformance suite fails for a store with less. */
export const CORE_RECORD_LIMITS: RecordLimits = {
  keyBytesMax: 1_000,
  valueBytesMax: 65_536,
  commitEntriesMax: 25,
  commitBytesMax: 1_048_576,
}

/**
 * Keys from `gte` (which may be empty) up to, not including, `lt`, in bytewise order; bounds that leave nothing are an
 * empty range.
 */
export interface RangeBounds {
  /** The first key, which is included if it exists. */
  readonly gte: Uint8Array
  /** The end, which is not included. */
  readonly lt: Uint8Array
  /** The most entries. */
  readonly limit?: number
  /** From the last entry to the first one. */
  readonly reverse?: boolean
}

/** `value: undefined` expects that the key is absent. */
export interface Expectation {
  /** The key. */
  readonly key: Uint8Array
  /** The value that the key must have; `undefined` if it must be absent. */
  readonly value: Uint8Array | undefined
}

/** A key occurs at most once in `put` and `remove` together, and at most once in `expect`. */
export interface Change {
  /** Entries to write, over those that exist. */
  readonly put?: readonly Entry[]
  /** Keys to remove. */
  readonly remove?: readonly Uint8Array[]
  /** The conditions of the change. */
  readonly expect?: readonly Expectation[]
}

/** An expectation that did not hold, and the value that was there instead. */
export interface Conflict {
  /** The index of the expectation in `expect`. */
  readonly index: number
  /** The value that the key had when the commit was decided; `undefined` if it was absent. */
  readonly value: Uint8Array | undefined
}

/**
 * `conflicts` holds every expectation that did not hold, in the order of `expect`. The others held at the same moment,
 * so a caller knows the values of all the keys that it expected, and can try again without reading them.
 */
export type CommitResult = { readonly ok: true } | { readonly ok: false; readonly conflicts: readonly Conflict[] }

/**
 * A place for small ordered records. Methods throw whatever the engine throws; the core wraps it once and keeps the
 * cause. Buffers that are passed in belong to the store until the call resolves, buffers that come out belong to the
 * caller.
 */
export interface RecordStore {
  /** The sizes that the store accepts. */
  readonly limits: RecordLimits
  /**
   * False for a store that forgets everything when it is closed. Absent: true. Opening a persistent store again finds
   * the same data.
   */
  readonly isPersistent?: boolean
  /**
   * True where several processes may have the records open at once. A service then looks every half second whether a
   * command works on the storage as a whole. Absent: false.
   */
  readonly isShared?: boolean
  /** Where the records are, for messages to the operator, without secrets. */
  readonly place?: string
  /** Opens the records, which calls otherwise do at first use. Calling it again is fine. */
  ready?(): Promise<void>
  /** In the order of `keys`, duplicates allowed. Sees every write that has resolved, from any process. */
  getMany(keys: readonly Uint8Array[], options?: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /**
   * In bytewise order, without a snapshot: an entry that exists throughout is seen exactly once. Returning early frees
   * everything.
   */
  range(bounds: RangeBounds, options?: CallOptions): AsyncIterable<readonly Entry[]>
  /**
   * Put if absent: any number of entries, each independent, repeatable, durable when the promise resolves. In the order
   * of `entries`: `undefined` if the entry was put, otherwise the existing value. Of two entries with one key the first
   * is put.
   */
  insertMany(entries: readonly Entry[], options?: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /**
   * All or nothing, durable when it resolves, serializable against other commits and inserts. A lost expectation is a
   * result, not an error. A commit that rejects may have been made, or be made later: an answer can be lost. So a store
   * never makes a commit again on its own, since it would then meet its own success as a conflict. The caller finds out
   * by reading.
   */
  commit(change: Change, options?: CallOptions): Promise<CommitResult>
  /** Waits for calls under way; later calls reject with `StorageClosedError`. Closing again is fine. */
  close(): Promise<void>
}

/** A blob in a listing: its name, its bytes, and when it was written, in milliseconds since 1970. */
export interface BlobInfo {
  /** The name of the blob. */
  readonly name: string
  /** The size of the blob, in bytes. */
  readonly sizeBytes: number
  /** The time at which the blob became whole, in milliseconds since 1970. */
  readonly modifiedAtMs: number
}

/**
 * A place for large immutable blobs. A blob is whole or absent, and never changes. Names are ASCII: `[a-z0-9-]` in segments divided by `/`,
 * `BLOB_NAME_BYTES_MAX` bytes at most; other names reject with a `RangeError`. `a` and `a/b` are two names that do not disturb each other.
 */
export interface BlobStore {
  /** The size of read that suits the medium: 1 MiB on disk, 8 MiB on S3. */
  readonly readBytesPreferred: number
  /** False for a store that keeps blobs in this process and forgets them when it is closed. Absent: true. */
  readonly isPersistent?: boolean
  /** Where the blobs are, for messages to the operator, without secrets. */
  readonly place?: string
  /** Opens the blobs, which calls otherwise do at first use. Calling it again is fine. */
  ready?(): Promise<void>
  /**
   * Durable when it resolves. A throw in `content` or an abort leaves nothing. A name that exists is an error
   * (`BlobExistsError`). Chunks may have any size, and belong to the store until it asks for the next one. `content` is
   * read to its end or returned early, never left open. An abort ends the call while the content hangs, too.
   */
  put(name: string, content: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<{ readonly sizeBytes: number }>
  /**
   * Exactly `end - start` bytes (at most `BLOB_READ_BYTES_MAX`) in one buffer that belongs to the caller, or an error:
   * `BlobNotFoundError` if the blob does not exist, `BlobRangeError` if it ends before `end`, `RangeError` for a range
   * that no blob can have.
   */
  read(name: string, start: number, end: number, options?: ReadOptions): Promise<Uint8Array>
  /** Absent names are fine. Durable when it resolves. */
  remove(names: readonly string[]): Promise<void>
  /**
   * Blobs whose name starts with `prefix`, in no promised order; a blob that exists throughout is seen exactly once.
   * The prefix is empty or the beginning of a blob name: it may end inside a segment or with `/`. `a/b` finds `a/b`,
   * `a/bc` and `a/b/c`. Other prefixes reject with a `RangeError`.
   */
  list(prefix: string, options?: CallOptions): AsyncIterable<readonly BlobInfo[]>
  /** Waits for calls under way; later calls reject with `StorageClosedError`. Closing again is fine. */
  close(): Promise<void>
}

/** Two halves that make one storage. Any two combine. */
export interface StorageBackend {
  /** Small records, with conditional commits. */
  readonly records: RecordStore
  /** Large immutable blobs. */
  readonly blobs: BlobStore
  /**
   * Opens the storage, which calls otherwise do at first use, so that a host learns early if it cannot start. Calling
   * it again is fine.
   */
  ready?(): Promise<void>
  /** Closes both halves. Closing again is fine. */
  close(): Promise<void>
}

/** The largest read that the core asks of a `BlobStore`. */
export const BLOB_READ_BYTES_MAX: number = 8 * 1_048_576

/** The longest blob name; short enough to be a file name everywhere. */
export const BLOB_NAME_BYTES_MAX = 240
