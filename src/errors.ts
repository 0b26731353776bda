/** Every code with its HTTP status: the one table that the README prints and that all layers use. */
export const ERROR_STATUS = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_utf8: 400,
  invalid_object: 400,
  invalid_delta: 400,
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
  storage_full: 507,
} as const

/** What went wrong, for programs. A code never changes its meaning. */
export type StowageErrorCode = keyof typeof ERROR_STATUS

/** Codes for which the same request may succeed a little later. */
const RETRYABLE: ReadonlySet<StowageErrorCode> = new Set([
  'request_timeout',
  'too_many_requests',
  'overloaded',
  'closing',
  'access_unavailable',
  'storage_unavailable',
])

/** The JSON body of every error answer, on every route. */
export interface ErrorBody {
  readonly message: string
  readonly statusCode: number
  readonly code: StowageErrorCode
}

/** What an error has beyond its code and message. */
export interface StowageErrorOptions {
  /** What a lower layer threw; kept for logs, never sent to a client. */
  readonly cause?: unknown
  /** Headers of the answer beyond the usual ones, such as `WWW-Authenticate` or `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** The only error that Stowage throws on purpose. `message` states the rule that was broken and where, and is safe to send to a client. */
export class StowageError extends Error {
  override readonly name: string = 'StowageError'
  readonly code: StowageErrorCode
  readonly statusCode: number
  readonly isRetryable: boolean
  readonly headers: Readonly<Record<string, string>>

  constructor(code: StowageErrorCode, message: string, options: StowageErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.statusCode = ERROR_STATUS[code]
    this.isRetryable = RETRYABLE.has(code)
    this.headers = options.headers ?? {}
  }

  /** The body of the answer: neither the cause nor the headers are in it. */
  toJSON(): ErrorBody {
    return { message: this.message, statusCode: this.statusCode, code: this.code }
  }
}
