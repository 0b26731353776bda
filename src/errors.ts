/** Every code with its HTTP status: the one table that the README prints and that all layers use. */
export const ERROR_STATUS = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_utf8: 400,
  invalid_object: 400,
  invalid_delta: 400,
  invalid_blocks: 400,
  invalid_id: 400,
  invalid_gzip: 400,
  invalid_multipart: 400,
  invalid_inputs: 400,
  invalid_inputs_schema: 400,
  nesting_too_deep: 400,
  request_aborted: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  route_not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  conflict: 409,
  too_many_runs: 409,
  base_mismatch: 409,
  objects_missing: 409,
  project_removed: 409,
  precondition_failed: 412,
  artifact_too_large: 413,
  object_too_large: 413,
  request_too_large: 413,
  inflated_too_large: 413,
  too_many_objects: 413,
  too_many_parts: 413,
  part_header_too_large: 413,
  id_list_too_large: 413,
  memory_limit_exceeded: 413,
  annotations_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  expectation_failed: 417,
  too_many_requests: 429,
  headers_too_large: 431,
  internal: 500,
  corrupt_data: 500,
  body_consumed: 500,
  not_supported: 501,
  overloaded: 503,
  closing: 503,
  access_unavailable: 503,
  storage_unavailable: 503,
  maintenance: 503,
  storage_full: 507,
  quota_exceeded: 507,
} as const

/**
 * The codes that only the client uses, with the HTTP status that a host answers when it passes the error on. A code of
 * `ERROR_STATUS` in a `ClientError` comes from a server.
 */
export const CLIENT_ERROR_STATUS = {
  /** A value cannot be turned into objects. */
  invalid_value: 400,
  /** No answer arrived, or it broke off. */
  network_failed: 502,
  /** An answer with an error status has no code that is known. */
  http_error: 502,
  /** A response violates the interface. */
  invalid_answer: 502,
  /** The received bytes are not the bytes that were sent. */
  integrity_failed: 502,
  /** Nothing arrived for too long. */
  timed_out: 504,
} as const

/** The machine-readable cause of an error: a code that a service answers. A code never changes its meaning. */
export type ServiceErrorCode = keyof typeof ERROR_STATUS

/** The machine-readable cause of an error: a code of a service, or one that only the client uses. */
export type StowageErrorCode = ServiceErrorCode | keyof typeof CLIENT_ERROR_STATUS

/** The status of each code, whoever uses it. */
export const STATUS_OF_CODE: Readonly<Record<StowageErrorCode, number>> = { ...ERROR_STATUS, ...CLIENT_ERROR_STATUS }

/** Codes for which the same request may succeed a little later. */
const RETRYABLE: ReadonlySet<StowageErrorCode> = new Set([
  'request_timeout',
  'too_many_requests',
  'overloaded',
  'closing',
  'access_unavailable',
  'storage_unavailable',
  'maintenance',
])

/** The JSON body of every error answer, on every route. */
export interface ErrorBody {
  /** The rule that was broken, and where. */
  readonly message: string
  /** The HTTP status. */
  readonly statusCode: number
  /** The machine-readable cause of the error. */
  readonly code: StowageErrorCode
  /** With `objects_missing`: the first hundred ids that are not held. */
  readonly ids?: readonly string[]
  /** With `invalid_inputs` and `invalid_inputs_schema`: each input that is wrong, and why. */
  readonly issues?: readonly { readonly path: string; readonly message: string }[]
}

/** Optional parts of an error besides its code and message. */
export interface StowageErrorOptions {
  /** The error of a lower layer. It is kept for logs and never sent to a client. */
  readonly cause?: unknown
  /** Headers of the answer beyond the usual ones, such as `WWW-Authenticate` or `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The base class of all errors that Stowage throws on purpose, in a service and in the client (`ClientError`).
 * `message` states the rule that was broken and where. The message of an error of the service is safe to send to a
 * client.
 */
export class StowageError extends Error {
  /** The name of the class. */
  override readonly name: string = 'StowageError'
  /** The machine-readable cause of the error. */
  readonly code: StowageErrorCode
  /** The HTTP status: that of the answer, or that with which a host should answer. */
  readonly statusCode: number
  /** Whether the same call may succeed a little later. */
  readonly isRetryable: boolean
  /** Headers of the answer beyond the usual ones. */
  readonly headers: Readonly<Record<string, string>>

  constructor(code: StowageErrorCode, message: string, options: StowageErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.statusCode = STATUS_OF_CODE[code]
    this.isRetryable = RETRYABLE.has(code)
    this.headers = options.headers ?? {}
  }

  /** The body of the answer: neither the cause nor the headers are in it. */
  toJSON(): ErrorBody {
    return { message: this.message, statusCode: this.statusCode, code: this.code }
  }
}

/** Whether `error` is an error of Stowage, from whichever copy of the package: `instanceof` knows one copy only. */
export function isStowageError(error: unknown): error is StowageError {
  if (error instanceof StowageError) return true
  if (!(error instanceof Error)) return false
  const { code, statusCode, isRetryable, toJSON } = error as Partial<StowageError>
  return (
    typeof code === 'string' &&
    Object.hasOwn(STATUS_OF_CODE, code) &&
    typeof statusCode === 'number' &&
    typeof isRetryable === 'boolean' &&
    typeof toJSON === 'function'
  )
}

/**
 * Whether a service may answer with the error. `ClientError` is about another server: its message may name what no
 * stranger should know.
 */
export function isServiceError(error: unknown): error is StowageError {
  return isStowageError(error) && error.name !== 'ClientError' && Object.hasOwn(ERROR_STATUS, error.code)
}
