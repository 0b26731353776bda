import type {
  BlobInfo,
  CallOptions,
  Change,
  CommitResult,
  Entry,
  PutOptions,
  ReadOptions,
  RangeBounds,
  RecordLimits,
} from './backend.ts'

/**
 * The engine under `guardedRecords`: the part that is particular to one database. A driver trusts its caller. When a
 * method runs, the storage is open and not closed, the arguments follow the rules of `RecordStore`, and the signal has
 * not aborted yet. It throws whatever the engine throws.
 */
export interface RecordStorageDriver {
  /** The capacity of its records, at least `CORE_RECORD_LIMITS`, which is also the default. */
  readonly limits?: RecordLimits
  /** False when nothing outlives `close`. Default: true. */
  readonly isPersistent?: boolean
  /** True where several processes may have the records open at once. Default: false. */
  readonly isShared?: boolean
  /** Where the storage is, for messages to the operator, without secrets. */
  readonly place?: string
  /** Opens the records. Called before the first call, and again at a later call if it rejected. */
  open(): Promise<OpenedRecords>
}

/** The engine under `guardedBlobs`, with the same rules as `RecordStorageDriver`. */
export interface BlobStorageDriver {
  /** The size of read that suits the medium, in bytes. Default: 1 MiB. */
  readonly readBytesPreferred?: number
  /** False when nothing outlives `close`. Default: true. */
  readonly isPersistent?: boolean
  /** Where the storage is, for messages to the operator, without secrets. */
  readonly place?: string
  /**
   * Opens the blobs. Called before the first call, and again at a later call if it rejected. Nothing is to be seen of a
   * `put` that a crash cut short.
   */
  open(): Promise<OpenedBlobs>
}

/** The engine under `guardedBackend`: one that holds records and blobs. */
export interface StorageDriver extends RecordStorageDriver, BlobStorageDriver {
  /**
   * Opens the storage. Called before the first call, and again at a later call if it rejected. Opening again finds the
   * same data, and nothing of a `put` that a crash cut short.
   */
  open(): Promise<OpenedDriver>
}

/** The opened records of a driver. */
export interface OpenedRecords {
  /** The records. */
  readonly records: RecordDriver
  /** Called once, when no call is under way and every range and list has ended. */
  close(): Promise<void>
}

/** The opened blobs of a driver. */
export interface OpenedBlobs {
  /** The blobs. */
  readonly blobs: BlobDriver
  /** Called once, when no call is under way and every range and list has ended. */
  close(): Promise<void>
}

/** The opened storage of a driver that holds both halves. */
export interface OpenedDriver extends OpenedRecords, OpenedBlobs {}

/** The records of a driver. `RecordStore` has the contract of each method. */
export interface RecordDriver {
  /** In the order of `keys`; the keys may repeat. */
  getMany(keys: readonly Uint8Array[], options: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /**
   * In bytewise order, in batches of bounded size, which may be empty. `gte` lies before `lt`, and a limit is above 0.
   * Early returns free everything.
   */
  range(bounds: RangeBounds, options: CallOptions): AsyncIterable<readonly Entry[]>
  /**
   * Put if absent, each entry on its own. A call may be long, so check the signal between its steps. Two entries may
   * have one key.
   */
  insertMany(entries: readonly Entry[], options: CallOptions): Promise<readonly (Uint8Array | undefined)[]>
  /** All or nothing; all three lists are there. */
  commit(change: Required<Change>, options: CallOptions): Promise<CommitResult>
}

/** The blobs of a driver. `BlobStore` has the contract of each method. */
export interface BlobDriver {
  /**
   * The content throws as soon as the signal aborts, also while the producer hangs, and is released when the call ends
   * for any reason. Throws `BlobExistsError` for an existing name.
   */
  put(name: string, content: AsyncIterable<Uint8Array>, options: PutOptions): Promise<{ readonly sizeBytes: number }>
  /** Throws `BlobNotFoundError` if the blob does not exist, `BlobRangeError` if it ends before `end`. */
  read(name: string, start: number, end: number, options: ReadOptions): Promise<Uint8Array>
  /** Absent names are fine, and names may repeat. */
  remove(names: readonly string[]): Promise<void>
  /** In batches of bounded size, which may be empty. The prefix may end inside a segment and may be empty. */
  list(prefix: string, options: CallOptions): AsyncIterable<readonly BlobInfo[]>
}
