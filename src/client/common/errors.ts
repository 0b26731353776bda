import {
  ERROR_STATUS,
  type ServiceErrorCode,
  STATUS_OF_CODE,
  StowageError,
  type StowageErrorCode,
} from '../../errors.ts'

/** Optional parts of a client error besides its code and message. */
export interface ClientErrorOptions {
  /** The error of a lower layer. */
  readonly cause?: unknown
  /** The HTTP status of the response, if there was one. */
  readonly statusCode?: number
  /** Whether the same call may succeed a little later; false by default. */
  readonly isRetryable?: boolean
  /** How long the server asks to be left alone, in milliseconds. */
  readonly retryAfterMs?: number
  /** The server's name for the request. */
  readonly requestId?: string
  /** Objects that the error is about. */
  readonly ids?: readonly string[]
}

/**
 * The only error that the client throws on purpose, beside the reason of a signal and `TypeError` or `RangeError` for
 * invalid options.
 */
export class ClientError extends StowageError {
  /** The name of the class. */
  override readonly name = 'ClientError'
  /**
   * The HTTP status of the answer. Without an answer, the status of the code: 400 for `invalid_id` and `invalid_value`,
   * else 502 or 504.
   */
  override readonly statusCode: number
  /** Whether the server answered. If not, `statusCode` follows from the code. */
  readonly isAnswered: boolean
  /** Whether the same call may succeed a little later. */
  override readonly isRetryable: boolean
  /** How long the server asks to be left alone, in milliseconds. */
  readonly retryAfterMs: number | undefined
  /** The server's name for the request, to be looked up in its logs. */
  readonly requestId: string | undefined
  /** Objects that the error is about, the first hundred of them; for `objects_missing`. */
  readonly ids: readonly string[]

  constructor(code: StowageErrorCode, message: string, options: ClientErrorOptions = {}) {
    super(code, message, { cause: options.cause })
    this.statusCode = options.statusCode ?? STATUS_OF_CODE[code]
    this.isAnswered = options.statusCode !== undefined
    this.isRetryable = options.isRetryable ?? false
    this.retryAfterMs = options.retryAfterMs
    this.requestId = options.requestId
    this.ids = options.ids ?? []
  }
}

const ERROR_TEXT_CHARACTERS_MAX = 200
/** No message of ours is longer. */
const MESSAGE_CHARACTERS_MAX = 2_000
const IDS_MAX = 100
/** Of the failures inside a server these stay as they are, however often one asks. */
const LASTING_CODES: ReadonlySet<StowageErrorCode> = new Set([
  'body_consumed',
  'corrupt_data',
  'not_supported',
  'quota_exceeded',
  'storage_full',
])
const LASTING_STATUSES: ReadonlySet<number> = new Set([501, 505, 507])

/** A service has a code for each of its limits. */
const PROXY_LIMIT =
  'a proxy in front of the service refuses a body of this size: send less in one request, or raise the limit of the proxy (client_max_body_size in nginx)'

/**
 * An error response as an error. `text` is its body, in the shape `{"message", "statusCode", "code"}` if it came from
 * Stowage.
 */
export function answerError(response: Response, what: string, text: string): ClientError {
  const { status, headers } = response
  const body = parsedBody(text)
  const said =
    typeof body.message === 'string'
      ? body.message.slice(0, MESSAGE_CHARACTERS_MAX)
      : quoted(text.trim() || response.statusText, ERROR_TEXT_CHARACTERS_MAX)
  const code = knownCode(body.code)
  const message = status === 413 && code === 'http_error' ? `${said}; ${PROXY_LIMIT}` : said
  return new ClientError(code, `${what} answered ${status}: ${message}`, {
    statusCode: status,
    isRetryable: isPassing(status, code),
    retryAfterMs: retryAfterMs(headers.get('retry-after')),
    requestId: headers.get('x-request-id') ?? undefined,
    ids: Array.isArray(body.ids) ? body.ids.filter((id) => typeof id === 'string').slice(0, IDS_MAX) : [],
  })
}

/** An error that stands within an answer of success, since it came after that had begun. */
export function toldError(value: unknown, what: string): ClientError {
  const body: ToldError = typeof value === 'object' && value !== null ? value : {}
  const code = knownCode(body.code)
  const status = STATUS_OF_CODE[code]
  const message = typeof body.message === 'string' ? body.message.slice(0, MESSAGE_CHARACTERS_MAX) : 'no message'
  return new ClientError(code, `${what} failed: ${message}`, {
    statusCode: status,
    isRetryable: isPassing(status, code),
  })
}

function knownCode(code: unknown): StowageErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_STATUS, code) ? (code as ServiceErrorCode) : 'http_error'
}

function isPassing(status: number, code: StowageErrorCode): boolean {
  return (
    status === 408 || status === 429 || (status >= 500 && !LASTING_STATUSES.has(status) && !LASTING_CODES.has(code))
  )
}

/**
 * Node's codes for certificates that are not trusted, and for a port that speaks no TLS. Trying again changes neither.
 */
const LASTING_CAUSE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|^ERR_SSL_|^ERR_TLS_/

/** Wraps the errors that `fetch` and the reading of a body throw for network failures. */
export function networkError(what: string, cause: unknown): ClientError {
  const inner = innermost(cause)
  const code = inner instanceof Error && 'code' in inner && typeof inner.code === 'string' ? inner.code : ''
  // For a name with several addresses, the error about all of them says nothing.
  const reason = inner instanceof Error ? inner.message || code || inner.name : String(inner)
  return new ClientError('network_failed', `${what} failed in transit: ${reason}`, {
    cause,
    isRetryable: !LASTING_CAUSE.test(code),
  })
}

function innermost(cause: unknown): unknown {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return inner instanceof AggregateError && inner.message === '' ? ((inner.errors as unknown[])[0] ?? inner) : inner
}

/** Foreign text as a message may show it. */
export function quoted(text: string, charactersMax: number = 64): string {
  return JSON.stringify(text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text)
}

/** Seconds or a date (RFC 9110 section 10.2.3). */
function retryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined
  const waitMs = /^\s*\d+(?:\.\d+)?\s*$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now()
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : undefined
}

interface ToldError {
  readonly message?: unknown
  readonly code?: unknown
  readonly ids?: readonly unknown[]
}

function parsedBody(text: string): ToldError {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
