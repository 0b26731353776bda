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
 * The engine under `guardedBackend`: the part that is particular to one database or medium. A driver trusts its caller.
 * When a method runs, the storage is open and not closed, the arguments follow the rules of `RecordStore` and
 * `BlobStore`, and the signal has not aborted yet. It throws whatever the engine throws.
 */
export interface StorageDriver {
  /** The capacity of its records, at least `CORE_RECORD_LIMITS`, which is also the default. */
  readonly limits?: RecordLimits
  /** The size of read that suits the medium, in bytes. Default: 1 MiB. */
  readonly readBytesPreferred?: number
  /** False when nothing outlives `close`. Default: true. */
  readonly isPersistent?: boolean
  /**
   * Opens the storage. Called before the first call, and again at a later call if it rejected. Opening again finds the
   * same data, and nothing of a `put` that a crash cut short.
   */
  open(): Promise<OpenedDriver>
}

/** The opened storage of a driver. */
export interface OpenedDriver {
  /** The records. */
  readonly records: RecordDriver
  /** The blobs. */
  readonly blobs: BlobDriver
  /** Called once, when no call is under way and every range and list has ended. */
  close(): Promise<void>
}

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
  read(name: string, start: number, end: number, options: CallOptions): Promise<Uint8Array>
  /** Absent names are fine, and names may repeat. */
  remove(names: readonly string[]): Promise<void>
  /** In batches of bounded size, which may be empty. The prefix may end inside a segment and may be empty. */
  list(prefix: string, options: CallOptions): AsyncIterable<readonly BlobInfo[]>
}
