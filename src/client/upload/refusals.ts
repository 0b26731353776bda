import { ClientError } from '../common/errors.ts'

const MISMATCH_STATUS = 409
const TOO_LARGE_STATUS = 413
const FORM_STATUSES: ReadonlySet<number | undefined> = new Set([400, TOO_LARGE_STATUS, 415])
/** Of status 413, what smaller requests cure. A proxy answers without a code. */
const CURED_BY_LESS: ReadonlySet<ClientError['code']> = new Set([
  'http_error',
  'request_too_large',
  'inflated_too_large',
  'too_many_objects',
  'memory_limit_exceeded',
])

/** Whether the fault lies in the data, rather than in the credentials or the moment. */
export function isRefusal(error: unknown): error is ClientError {
  return (
    error instanceof ClientError &&
    error.isAnswered &&
    error.statusCode >= 400 &&
    error.statusCode < 500 &&
    error.statusCode !== 401 &&
    !error.isRetryable
  )
}

/** Whether the base of a delta is another text on the server, which says nothing about other deltas. */
export function isAboutBase({ statusCode }: ClientError): boolean {
  return statusCode === MISMATCH_STATUS
}

export function isTooLarge({ statusCode }: ClientError): boolean {
  return statusCode === TOO_LARGE_STATUS
}

/** Whether the refusal may be about the form of a batch, and not about its objects. */
export function mayBeAboutForm({ statusCode }: ClientError): boolean {
  return FORM_STATUSES.has(statusCode)
}

/** Whether fewer objects in a request may help. */
export function isCuredByLess(error: ClientError): boolean {
  return isTooLarge(error) && CURED_BY_LESS.has(error.code)
}
