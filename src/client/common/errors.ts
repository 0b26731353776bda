import { ERROR_STATUS, type StowageErrorCode } from '../../errors.ts'

/**
 * The server's codes, and those of the client: `network_failed` (no answer, or a broken one), `timed_out` (nothing came for too long), `http_error` (an
 * error without a code that is known), `invalid_answer` (not what the interface promises), `integrity_failed` (what came is not what was sent) and
 * `invalid_value` (a value that cannot be turned into objects).
 */
export type ClientErrorCode =
  | StowageErrorCode
  | 'network_failed'
  | 'timed_out'
  | 'http_error'
  | 'invalid_answer'
  | 'integrity_failed'
  | 'invalid_value'

/** What an error of the client has beyond its code and message. */
export interface ClientErrorOptions {
  readonly cause?: unknown
  readonly status?: number
  readonly isRetryable?: boolean
  readonly retryAfterMs?: number
  readonly requestId?: string
  readonly ids?: readonly string[]
}

/** The only error that the client throws on purpose, beside the reason of a signal and `TypeError` or `RangeError` for options that cannot be. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode
  /** The HTTP status of the answer, where there was one. */
  readonly status: number | undefined
  /** Whether the same call may succeed a little later. */
  readonly isRetryable: boolean
  /** How long the server wants to be left alone. */
  readonly retryAfterMs: number | undefined
  /** The server's name for the request, to be looked up in its logs. */
  readonly requestId: string | undefined
  /** Objects that the error is about, the first hundred of them; for `objects_missing`. */
  readonly ids: readonly string[]

  constructor(code: ClientErrorCode, message: string, options: ClientErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = options.status
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
const LASTING_CODES: ReadonlySet<ClientErrorCode> = new Set([
  'body_consumed',
  'corrupt_data',
  'not_supported',
  'storage_full',
])
const LASTING_STATUSES: ReadonlySet<number> = new Set([501, 505, 507])

/** A service has a code for each of its limits. */
const PROXY_LIMIT =
  'a proxy before the service takes no body of this size: send less in one request, or raise the limit of the proxy (client_max_body_size of nginx)'

/** An answer with an error status as an error. `text` is its body, in the shape `{"message", "statusCode", "code"}` when it came from Stowage. */
export function answerError(response: Response, what: string, text: string): ClientError {
  const { status, headers } = response
  const body = parsedBody(text)
  const code =
    typeof body.code === 'string' && Object.hasOwn(ERROR_STATUS, body.code)
      ? (body.code as StowageErrorCode)
      : 'http_error'
  const said =
    typeof body.message === 'string'
      ? body.message.slice(0, MESSAGE_CHARACTERS_MAX)
      : quoted(text.trim() || response.statusText, ERROR_TEXT_CHARACTERS_MAX)
  const message = status === 413 && code === 'http_error' ? `${said}; ${PROXY_LIMIT}` : said
  const isPassing =
    status === 408 || status === 429 || (status >= 500 && !LASTING_STATUSES.has(status) && !LASTING_CODES.has(code))
  return new ClientError(code, `${what} answered ${status}: ${message}`, {
    status,
    isRetryable: isPassing,
    retryAfterMs: retryAfterMs(headers.get('retry-after')),
    requestId: headers.get('x-request-id') ?? undefined,
    ids: Array.isArray(body.ids) ? body.ids.filter((id) => typeof id === 'string').slice(0, IDS_MAX) : [],
  })
}

/** Node's codes for certificates that are not trusted, and for a port that speaks no TLS. Trying again changes neither. */
const LASTING_CAUSE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|^ERR_SSL_|^ERR_TLS_/

/** What `fetch` and the reading of a body throw when the network does. */
export function networkError(what: string, cause: unknown): ClientError {
  const inner = innermost(cause)
  const code = inner instanceof Error && 'code' in inner && typeof inner.code === 'string' ? inner.code : ''
  // Of a name with several addresses, the error about all of them says nothing.
  const reason = inner instanceof Error ? inner.message || code || inner.name : String(inner)
  return new ClientError('network_failed', `${what} failed on the way: ${reason}`, {
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

function parsedBody(text: string): {
  readonly message?: unknown
  readonly code?: unknown
  readonly ids?: readonly unknown[]
} {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
