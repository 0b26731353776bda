import { ERROR_STATUS, isServiceError, type ServiceErrorCode, StowageError } from '../errors.ts'

const RETRY_LATER: Readonly<Record<string, string>> = { 'Retry-After': '5' }

/**
 * Thrown by `BlobStore.read` for a name that does not exist. The core reads only blobs that its records name: hence the
 * code `corrupt_data`.
 */
export class BlobNotFoundError extends StowageError {
  /** The name of the class. */
  override readonly name = 'BlobNotFoundError'
  constructor(blobName: string) {
    super('corrupt_data', `the storage holds no blob named ${blobName}`)
  }
}

/**
 * Thrown by `BlobStore.read` for a range that does not lie inside the blob. Its code is `corrupt_data`: the blob was
 * cut short.
 */
export class BlobRangeError extends StowageError {
  /** The name of the class. */
  override readonly name = 'BlobRangeError'
  /** `size` is that of the blob, in bytes. */
  constructor(blobName: string, end: number, size: number) {
    super('corrupt_data', `cannot read blob ${blobName} up to byte ${end}: it has ${size} bytes`)
  }
}

/** Thrown by `BlobStore.put` for a name that exists already. */
export class BlobExistsError extends StowageError {
  /** The name of the class. */
  override readonly name = 'BlobExistsError'
  constructor(blobName: string) {
    super('storage_unavailable', `the storage already holds a blob named ${blobName}`)
  }
}

/** Thrown by every method of a storage that was closed. */
export class StorageClosedError extends StowageError {
  /** The name of the class. */
  override readonly name = 'StorageClosedError'
  constructor() {
    super('storage_unavailable', 'the storage was closed', { headers: RETRY_LATER })
  }
}

/**
 * Thrown by every write after one write or sync failed in a way that leaves the state of the disk unknown (`cause`).
 * Reads continue; writing works again once the storage was closed and opened anew.
 */
export class StoragePoisonedError extends StowageError {
  /** The name of the class. */
  override readonly name = 'StoragePoisonedError'
  constructor(cause: unknown) {
    super(
      'storage_unavailable',
      'an earlier write failed, so the storage accepts no more writes until it is opened again',
      { cause, headers: RETRY_LATER },
    )
  }
}

/**
 * The errors of the seam and their codes. They are recognized by name, since an error may come from another copy of the
 * package.
 */
const CODES: Readonly<Record<StorageErrorName, ServiceErrorCode>> = {
  BlobNotFoundError: 'corrupt_data',
  BlobRangeError: 'corrupt_data',
  BlobExistsError: 'storage_unavailable',
  StorageClosedError: 'storage_unavailable',
  StoragePoisonedError: 'storage_unavailable',
}

/** The name of an error of the storage seam. */
export type StorageErrorName =
  | 'BlobNotFoundError'
  | 'BlobRangeError'
  | 'BlobExistsError'
  | 'StorageClosedError'
  | 'StoragePoisonedError'

/** Whether `error` is the seam's error of that name, from any copy of the package. */
export function isStorageError(error: unknown, name: StorageErrorName): boolean {
  return error instanceof Error && error.name === name
}

/** An error of the seam that another copy of the package made, or a backend that has classes of its own. */
class ForeignStorageError extends StowageError {
  override readonly name: StorageErrorName

  constructor(name: StorageErrorName, cause: Error) {
    const code = CODES[name]
    super(code, cause.message, { cause, headers: code === 'storage_unavailable' ? RETRY_LATER : undefined })
    this.name = name
  }
}

const FULL_ERRNOS: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
const CAUSES_MAX = 8

/**
 * The one place where errors of an engine are classified: `storage_full` for a full disk, `storage_unavailable` for
 * anything else, with the cause kept. Errors of the seam pass, and so does the reason of the caller's own abort. An
 * abort by the engine itself is a failure. Messages call the storage `what`.
 */
export function storageError(error: unknown, signal?: AbortSignal, what: string = 'the storage'): unknown {
  if (isServiceError(error)) return error
  if (signal?.aborted === true && (error === signal.reason || isAbort(error))) return signal.reason
  if (error instanceof Error) {
    if (Object.hasOwn(CODES, error.name)) return new ForeignStorageError(error.name as StorageErrorName, error)
    const code = codeOfCopy(error)
    if (code !== undefined) return new StowageError(code, error.message, { cause: error })
  }
  if (isFull(error))
    return new StowageError('storage_full', `${what} is full; nothing of this request was stored`, { cause: error })
  const message = `${what} cannot be used at the moment`
  return new StowageError('storage_unavailable', message, { cause: error, headers: RETRY_LATER })
}

function codeOfCopy(error: Error & { readonly code?: unknown }): ServiceErrorCode | undefined {
  const { name, code } = error
  return name === 'StowageError' && typeof code === 'string' && Object.hasOwn(ERROR_STATUS, code)
    ? (code as ServiceErrorCode)
    : undefined
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}

/** By the `code` of the error or of its cause: databases wrap the system's errors. */
function isFull(error: unknown): boolean {
  let at = error
  for (let depth = 0; depth < CAUSES_MAX && at instanceof Error; depth++, at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string' && FULL_ERRNOS.has(code)) return true
    if (/no space left on device/i.test(at.message)) return true
  }
  return false
}
