import { StowageError } from '../errors.ts'
import type {
  BlobInfo,
  BlobStore,
  CallOptions,
  Change,
  CommitResult,
  Entry,
  Expectation,
  PutOptions,
  ReadOptions,
  RangeBounds,
  RecordLimits,
  RecordStore,
  StorageBackend,
} from './backend.ts'
import { CORE_RECORD_LIMITS } from './backend.ts'
import {
  checkBlobName,
  checkBlobNames,
  checkBlobPrefix,
  checkChange,
  checkEntries,
  checkKeys,
  checkRange,
  checkReadRange,
  isEmptyRange,
} from './checks.ts'
import type {
  BlobDriver,
  BlobStorageDriver,
  OpenedBlobs,
  OpenedRecords,
  RecordDriver,
  RecordStorageDriver,
  StorageDriver,
} from './driver.ts'
import { GuardedHalf } from './guarded-half.ts'
import { PutContent } from './put-content.ts'

const READ_BYTES_PREFERRED = 1_048_576

/** Marks the backends that this copy of the package guards; another copy has its own classes of errors. */
const GUARDED: unique symbol = Symbol('stowage.storage.guarded')

/**
 * A backend over a driver. It does everything that does not depend on the engine: it checks arguments, opens at the first call, refuses calls after
 * `close` and lets those under way end, honours aborts before a call, between batches and in the content of a blob, and classifies what the engine throws.
 *
 * @example
 * import { memoryBackend } from 'stowage/memory'
 * import { guardedBackend, type OpenedDriver } from 'stowage/storage'
 *
 * async function open(): Promise<OpenedDriver> {
 *   const { records, blobs, close } = memoryBackend() // open your own database here
 *   return { records, blobs, close: async () => close?.() }
 * }
 * const backend = guardedBackend({ isPersistent: false, open })
 * await backend.records.getMany([Buffer.from('a key')]) // [undefined]
 */
export function guardedBackend(driver: StorageDriver): StorageBackend {
  const shared = new SharedDriver(driver)
  const records = new GuardedRecords(driver, shared, 'the storage')
  const blobs = new GuardedBlobs(driver, shared, 'the storage')
  return marked({
    records,
    blobs,
    ready: async () => {
      await records.ready()
      await blobs.ready()
    },
    close: async () => {
      await Promise.all([records.close(), blobs.close()])
    },
  })
}

/** Records alone over a driver, with the guard of `guardedBackend`. `combinedBackend` puts blobs beside them. */
export function guardedRecords(driver: RecordStorageDriver): RecordStore {
  return new GuardedRecords(driver, new SharedDriver(driver), 'the storage of the records')
}

/** Blobs alone over a driver, with the guard of `guardedBackend`. `combinedBackend` puts records beside them. */
export function guardedBlobs(driver: BlobStorageDriver): BlobStore {
  return new GuardedBlobs(driver, new SharedDriver(driver), 'the storage of the blobs')
}

/** The records themselves if they are guarded; otherwise a guard around them. */
export function asGuardedRecords(records: RecordStore): RecordStore {
  if (GuardedRecords.is(records)) return records
  const { limits, isPersistent, isShared, place } = records
  const open = async (): Promise<OpenedRecords> => {
    await records.ready?.()
    return { records, close: () => records.close() }
  }
  return guardedRecords({ limits, isPersistent, isShared, place, open })
}

/** The blobs themselves if they are guarded; otherwise a guard around them. */
export function asGuardedBlobs(blobs: BlobStore): BlobStore {
  if (GuardedBlobs.is(blobs)) return blobs
  const { readBytesPreferred, isPersistent, place } = blobs
  const open = async (): Promise<OpenedBlobs> => {
    await blobs.ready?.()
    return { blobs, close: () => blobs.close() }
  }
  return guardedBlobs({ readBytesPreferred, isPersistent, place, open })
}

/**
 * The backend itself if it is guarded; otherwise a guard around it, which classifies its errors and checks its
 * arguments.
 */
export function asGuarded(backend: StorageBackend): StorageBackend {
  if (GUARDED in backend) return backend
  const { records, blobs } = backend
  const guarded = guardedBackend({
    limits: records.limits,
    isShared: records.isShared,
    readBytesPreferred: blobs.readBytesPreferred,
    open: async () => {
      await backend.ready?.()
      return { records, blobs, close: async () => undefined }
    },
  })
  return marked({
    ...guarded,
    close: async () => {
      await guarded.close()
      await backend.close()
    },
  })
}

/** Not enumerable: a copy with other halves is not guarded any more. */
function marked(backend: StorageBackend): StorageBackend {
  return Object.defineProperty(backend, GUARDED, { value: true })
}

/** One driver under one or two halves: opened when the first of them needs it, closed when the last that used it is closed. */
class SharedDriver<O extends { close(): Promise<void> }> {
  readonly #driver: { open(): Promise<O> }
  readonly #users = new Set<string>()
  #opening: Promise<O> | undefined

  constructor(driver: { open(): Promise<O> }) {
    this.#driver = driver
  }

  /** A failed opening is not remembered: the obstacle may be gone at the next call. */
  async use(user: string): Promise<O> {
    this.#users.add(user)
    this.#opening ??= this.#driver.open()
    const opening = this.#opening
    try {
      return await opening
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined
      throw error
    }
  }

  async release(user: string): Promise<void> {
    this.#users.delete(user)
    const opening = this.#opening
    if (this.#users.size > 0 || !opening) return
    this.#opening = undefined
    await (await opening.catch(() => undefined))?.close()
  }
}

class GuardedRecords implements RecordStore {
  readonly limits: RecordLimits
  readonly isPersistent: boolean
  readonly isShared: boolean
  readonly place: string | undefined
  readonly #half: GuardedHalf<RecordDriver>

  constructor(
    { limits = CORE_RECORD_LIMITS, isPersistent = true, isShared = false, place }: RecordStorageDriver,
    shared: SharedDriver<OpenedRecords>,
    what: string,
  ) {
    this.limits = limits
    this.isPersistent = isPersistent
    this.isShared = isShared
    this.place = place
    this.#half = new GuardedHalf(
      what,
      async () => (await shared.use('records')).records,
      () => shared.release('records'),
    )
  }

  /** Not `instanceof`: a proxy around guarded records has errors of its own. */
  static is(records: RecordStore): boolean {
    return #half in records
  }

  ready(): Promise<void> {
    return this.#half.ready()
  }

  async getMany(keys: readonly Uint8Array[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    this.#half.check(options.signal)
    checkKeys(keys, this.limits)
    return this.#half.call(options.signal, (driver) => driver.getMany(keys, options))
  }

  async *range(bounds: RangeBounds, options: CallOptions = {}): AsyncIterable<readonly Entry[]> {
    this.#half.check(options.signal)
    checkRange(bounds)
    if (!isEmptyRange(bounds)) yield* this.#half.each(options.signal, (driver) => driver.range(bounds, options))
  }

  async insertMany(entries: readonly Entry[], options: CallOptions = {}): Promise<readonly (Uint8Array | undefined)[]> {
    this.#half.check(options.signal)
    checkEntries(entries, this.limits)
    return this.#half.call(options.signal, (driver) => driver.insertMany(entries, options))
  }

  async commit({ put = [], remove = [], expect = [] }: Change, options: CallOptions = {}): Promise<CommitResult> {
    this.#half.check(options.signal)
    const change = { put, remove, expect }
    checkChange(change, this.limits)
    return this.#half.call(options.signal, async (driver) =>
      checkedResult(await driver.commit(change, options), expect),
    )
  }

  close(): Promise<void> {
    return this.#half.close()
  }
}

/** A caller goes on with the values of the conflicts, so a result without them must not pass. */
function checkedResult(result: CommitResult, expect: readonly Expectation[]): CommitResult {
  if (result.ok) return result
  const areIndices = result.conflicts.every(({ index }) => expect[index] !== undefined)
  if (areIndices && result.conflicts.length > 0) return result
  throw new StowageError(
    'internal',
    `a commit with ${expect.length} expectations was refused with conflicts that do not fit them; each conflict must be { index, value }`,
  )
}

class GuardedBlobs implements BlobStore {
  readonly readBytesPreferred: number
  readonly isPersistent: boolean
  readonly place: string | undefined
  readonly #half: GuardedHalf<BlobDriver>

  constructor(
    { readBytesPreferred = READ_BYTES_PREFERRED, isPersistent = true, place }: BlobStorageDriver,
    shared: SharedDriver<OpenedBlobs>,
    what: string,
  ) {
    this.readBytesPreferred = readBytesPreferred
    this.isPersistent = isPersistent
    this.place = place
    this.#half = new GuardedHalf(
      what,
      async () => (await shared.use('blobs')).blobs,
      () => shared.release('blobs'),
    )
  }

  /** Not `instanceof`: a proxy around guarded blobs has errors of its own. */
  static is(blobs: BlobStore): boolean {
    return #half in blobs
  }

  ready(): Promise<void> {
    return this.#half.ready()
  }

  async put(
    name: string,
    content: AsyncIterable<Uint8Array>,
    options: PutOptions = {},
  ): Promise<{ readonly sizeBytes: number }> {
    const watched = new PutContent(content, options.signal)
    try {
      this.#half.check(options.signal)
      checkBlobName(name)
      return await this.#half.call(options.signal, (driver) => driver.put(name, watched, options))
    } catch (error) {
      // Errors of the content are not the storage's doing and pass unchanged.
      throw watched.failure ? watched.failure.error : error
    } finally {
      await watched.release()
    }
  }

  async read(name: string, start: number, end: number, options: ReadOptions = {}): Promise<Uint8Array> {
    this.#half.check(options.signal)
    checkBlobName(name)
    checkReadRange(start, end)
    const bytes = await this.#half.call(options.signal, (driver) => driver.read(name, start, end, options))
    if (bytes.length !== end - start) {
      const message = `a read of blob ${name} from byte ${start} to ${end} gave ${bytes.length} bytes; it must give ${end - start}`
      throw new StowageError('corrupt_data', message)
    }
    return bytes
  }

  async remove(names: readonly string[]): Promise<void> {
    this.#half.check(undefined)
    checkBlobNames(names)
    return this.#half.call(undefined, (driver) => driver.remove(names))
  }

  async *list(prefix: string, options: CallOptions = {}): AsyncIterable<readonly BlobInfo[]> {
    this.#half.check(options.signal)
    checkBlobPrefix(prefix)
    yield* this.#half.each(options.signal, (driver) => driver.list(prefix, options))
  }

  close(): Promise<void> {
    return this.#half.close()
  }
}
