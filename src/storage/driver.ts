import type {
  BlobInfo,
  CallOptions,
  Change,
  CommitResult,
  Entry,
  PutOptions,
  RangeBounds,
  RecordLimits,
} from './backend.ts'

/**
 * The engine under `guardedBackend`: what is particular to one database or medium. A driver trusts its caller. When a method runs, the storage is open and
 * not closed, the arguments keep the rules of `RecordStore` and `BlobStore`, and the signal has not aborted yet. It throws whatever the engine throws.
 */
export interface StorageDriver {
  /** What its records can take, `CORE_RECORD_LIMITS` at least, which is also the default. */
  readonly limits?: RecordLimits
  /** The size of read that suits the medium, in bytes. Default: 1 MiB. */
  readonly readBytesPreferred?: number
  /** False when nothing outlives `close`. Default: true. */
  readonly isPersistent?: boolean
  /**
   * Opens the storage. Called before the first call, and again at a later call if it rejected. Opening again finds the same data, and nothing of
   * a `put` that a crash cut short.
   */
  open(): Promise<OpenDriver>
}

/** What a driver opened. */
export interface OpenDriver {
  /** The records. */
  readonly records: RecordDriver
  /** The blobs. */
  readonly blobs: BlobDriver
  /** Called once, when no call is under way and every range and list has ended. */
  close(): Promise<void>
}

/** The records of a driver. The contract of each method stands at `RecordStore`. */
export interface RecordDriver {
  /** In the order of `keys`; the keys may repeat. */
  getMany(keys: readonly Uint8Array[], options: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /** In bytewise order, in batches of bounded size, which may be empty. `gte` lies before `lt`, and a limit is above 0. Early returns free everything. */
  range(bounds: RangeBounds, options: CallOptions): AsyncIterable<readonly Entry[]>
  /** Put if absent, each entry for itself; a call may be long, so look at the signal between its steps. Two entries may have one key. */
  insertMany(entries: readonly Entry[], options: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /** All or nothing; all three lists are there. */
  commit(change: Required<Change>, options: CallOptions): Promise<CommitResult>
}

/** The blobs of a driver. The contract of each method stands at `BlobStore`. */
export interface BlobDriver {
  /**
   * The content throws as soon as the signal aborts, also while the producer hangs, and is let go when the call ends, however it ends.
   * Throws `BlobExistsError` for a name that exists.
   */
  put(name: string, content: AsyncIterable<Uint8Array>, options: PutOptions): Promise<{ readonly sizeBytes: number }>
  /** Throws `BlobNotFoundError` when there is no such blob, `BlobRangeError` when it ends before `end`. */
  read(name: string, start: number, end: number, options: CallOptions): Promise<Uint8Array>
  /** Absent names are fine, and names may repeat. */
  remove(names: readonly string[]): Promise<void>
  /** In batches of bounded size, which may be empty. The prefix may end inside a segment and may be empty. */
  list(prefix: string, options: CallOptions): AsyncIterable<readonly BlobInfo[]>
}
