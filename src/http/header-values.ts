import type { IncomingMessage } from 'node:http'
import { StowageError } from '../errors.ts'

/** Headers that may occur only once (RFC 9110, section 5.3). Repeated values are one list by now. */
const SINGLE: readonly string[] = ['host', 'content-length']

/**
 * All values of a header. For some headers Node keeps the first value and silently drops the others (`Authorization`,
 * `Host`, `Content-Type` and more), so a proxy may have seen a different one than the server. A value that a middleware
 * of the host set is taken unchanged.
 */
export function valuesOf(req: IncomingMessage, name: string, value: string | readonly string[]): readonly string[] {
  if (typeof value !== 'string') return value
  const came = (req as Partial<IncomingMessage>).headersDistinct?.[name]
  return came !== undefined && came.length > 1 && came[0] === value ? came : [value]
}

/** Throws `invalid_request` for headers that must not come twice. */
export function checkSingleHeaders(headers: Headers): void {
  for (const name of SINGLE) {
    if (headers.get(name)?.includes(',') === true)
      throw new StowageError('invalid_request', `the header ${name} is repeated`)
  }
}
