import type { IncomingMessage } from 'node:http'
import { StowageError } from '../errors.ts'

/** Headers of which there can be one only (RFC 9110, section 5.3). Where several came their values are one list by now. */
const SINGLE: readonly string[] = ['host', 'content-length']

/**
 * Every value that came of a header. Of some headers Node keeps the first value and drops the others in silence (`Authorization`, `Host`,
 * `Content-Type` and more), so that a proxy may have looked at another one than the server. A value that a middleware of the host set is taken as it is.
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
