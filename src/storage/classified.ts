import { StowageError, type StowageErrorCode } from '../errors.ts'
import { BlobNotFoundError, type BlobStore, type RecordStore, type StorageBackend } from './backend.ts'

/** What an engine's own error code means to a client. Everything else that storage throws is `storage_unavailable`. */
const CODE_OF_ERRNO: Readonly<Record<string, StowageErrorCode>> = {
  ENOSPC: 'storage_full',
  EDQUOT: 'storage_full',
  EFBIG: 'storage_full',
}

const MESSAGES: Partial<Record<StowageErrorCode, string>> = {
  storage_full: 'the storage is full; nothing of this request was kept',
  storage_unavailable: 'the storage cannot be used at the moment',
  corrupt_data: 'something that the storage should hold is missing',
}

/**
 * Raw errors of a backend become `StowageError` here, once, with the cause kept. Errors that are one already pass, and so do those that an abort
 * brought; an engine that gives up by itself, with no abort of ours, is an engine that failed.
 */
export function storageError(error: unknown, signal?: AbortSignal): unknown {
  if (error instanceof StowageError || (signal?.aborted && (error === signal.reason || isAbort(error)))) return error
  const code =
    error instanceof BlobNotFoundError ? 'corrupt_data' : (CODE_OF_ERRNO[errnoOf(error)] ?? 'storage_unavailable')
  const headers = code === 'storage_unavailable' ? { 'Retry-After': '5' } : undefined
  return new StowageError(code, MESSAGES[code] as string, { cause: error, headers })
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}

/** The `code` of the error or of what caused it: databases wrap the system's errors. */
function errnoOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException
    if (typeof code === 'string' && code in CODE_OF_ERRNO) return code
    if (/no space left on device/i.test(at.message)) return 'ENOSPC'
  }
  return ''
}

/** Takes the call rather than its promise: a method may throw before there is one. */
async function classify<T>(call: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw storageError(error, signal)
  }
}

async function* classifyEach<T>(call: () => AsyncIterable<T>, signal: AbortSignal | undefined): AsyncGenerator<T> {
  try {
    yield* call()
  } catch (error) {
    throw storageError(error, signal)
  }
}

function classifiedRecords(records: RecordStore): RecordStore {
  return {
    limits: records.limits,
    getMany: (keys, options) => classify(() => records.getMany(keys, options), options?.signal),
    range: (bounds, options) => classifyEach(() => records.range(bounds, options), options?.signal),
    insertMany: (entries, options) => classify(() => records.insertMany(entries, options), options?.signal),
    commit: (change, options) => classify(() => records.commit(change, options), options?.signal),
    close: () => records.close(),
  }
}

function classifiedBlobs(blobs: BlobStore): BlobStore {
  return {
    readBytesPreferred: blobs.readBytesPreferred,
    put: (name, content, options) => putBlob(blobs, name, content, options),
    read: (name, start, end, options) => classify(() => readInside(blobs, name, start, end, options), options?.signal),
    remove: (names) => classify(() => blobs.remove(names), undefined),
    list: (prefix, options) => classifyEach(() => blobs.list(prefix, options), options?.signal),
    close: () => blobs.close(),
  }
}

/** The core reads only what its records say is there: a blob that ends before it was cut short. */
async function readInside(
  blobs: BlobStore,
  ...[name, start, end, options]: Parameters<BlobStore['read']>
): ReturnType<BlobStore['read']> {
  try {
    return await blobs.read(name, start, end, options)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new StowageError('corrupt_data', 'something that the storage should hold is cut short', { cause: error })
  }
}

/** What `content` throws is not the storage's doing and passes as it is. */
async function putBlob(
  blobs: BlobStore,
  ...[name, content, options]: Parameters<BlobStore['put']>
): ReturnType<BlobStore['put']> {
  const failure: { error?: unknown } = {}
  const watched = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* content
    } catch (error) {
      failure.error = error
      throw error
    }
  }
  try {
    return await blobs.put(name, watched(), options)
  } catch (error) {
    throw 'error' in failure ? failure.error : storageError(error, options?.signal)
  }
}

export function classifiedBackend(backend: StorageBackend): StorageBackend {
  return {
    records: classifiedRecords(backend.records),
    blobs: classifiedBlobs(backend.blobs),
    close: () => backend.close(),
  }
}
