import { isServiceError, StowageError } from '../errors.ts'
import type { Answer } from './exchange.ts'

const RETRY_AFTER_S = 5
const CAUSES_MAX = 8

/** The errors of a storage whose disk is full, or of a process with too many open files. */
const DISK_FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT'])
const TOO_MANY_FILES: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE'])

/** Of errors of the storage, whose own messages name blobs and files. The log gets those, as the cause. */
const PUBLIC_MESSAGES: Readonly<Record<string, string>> = {
  corrupt_data:
    "stored data is damaged; the server's log says which, and its operator can find all damage with a check",
  storage_unavailable: 'the storage cannot be used at the moment',
}

/**
 * Turns any thrown value into the one kind of error that leaves the service, with a message without internal names.
 * Unknown errors become `internal`, with a message that reveals nothing.
 */
export function toStowageError(thrown: unknown): StowageError {
  if (isServiceError(thrown) && thrown.code !== 'internal') return withPublicMessage(thrown)
  const code = systemErrorCode(thrown)
  if (DISK_FULL.has(code))
    return new StowageError('storage_full', 'the storage is full; nothing of this request was stored', {
      cause: thrown,
    })
  if (TOO_MANY_FILES.has(code))
    return new StowageError('overloaded', 'the server holds too many open files; try again a little later', {
      cause: thrown,
    })
  return isServiceError(thrown)
    ? thrown
    : new StowageError('internal', 'the request failed inside the server', { cause: thrown })
}

function withPublicMessage(error: StowageError): StowageError {
  const message = Object.hasOwn(PUBLIC_MESSAGES, error.code) ? PUBLIC_MESSAGES[error.code] : error.message
  if (message === error.message) return error
  return new StowageError(error.code, message, { cause: error, headers: error.headers })
}

/** The one shape of every error answer: `{"message", "statusCode", "code"}`. */
export function errorAnswer(error: StowageError): Answer {
  const retry: Record<string, string> = error.isRetryable ? { 'Retry-After': String(RETRY_AFTER_S) } : {}
  return {
    status: error.statusCode,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      ...retry,
      ...error.headers,
    },
    body: Buffer.from(JSON.stringify(error)),
  }
}

function systemErrorCode(thrown: unknown): unknown {
  let error = thrown
  for (let depth = 0; depth < CAUSES_MAX && error instanceof Error; depth++) {
    const { code } = error as { code?: unknown }
    if (DISK_FULL.has(code) || TOO_MANY_FILES.has(code)) return code
    error = error.cause
  }
  return undefined
}
