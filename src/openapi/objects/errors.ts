import { ERROR_STATUS, type ServiceErrorCode } from '../../errors.ts'
import { errorResponses, headerRef, SHARED_HEADERS } from '../description/shared.ts'
import type { Headers, Responses } from '../description/types.ts'
import { UNKNOWN_ID } from './examples.ts'
import { HEADERS, required } from './parts.ts'

/** Errors of any endpoint about objects. The first code of each status is the one of the example. */
const ALWAYS: readonly ServiceErrorCode[] = [
  'invalid_id',
  'invalid_request',
  'unauthenticated',
  'forbidden',
  'too_many_requests',
  'internal',
  'corrupt_data',
  'overloaded',
  'closing',
  'access_unavailable',
  'storage_unavailable',
  'maintenance',
]

/** The errors that reading a body adds. */
export const BODY_FAULTS: readonly ServiceErrorCode[] = [
  'invalid_json',
  'invalid_utf8',
  'invalid_gzip',
  'nesting_too_deep',
  'request_aborted',
  'unsupported_media_type',
  'body_consumed',
]

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'project id "a\\u0000b" holds U+0000 at byte 1; it must be free of control characters (C0, DEL, C1), U+2028 and U+2029',
  401: 'a token is needed in the header "Authorization: Bearer <token>"',
  403: 'this token does not give the right to read in this project',
  404: `there is no object "${UNKNOWN_ID}" in this project`,
  406: 'Accept-Encoding allows neither gzip nor identity, the two available codings',
  409: `1 of the objects are not held, such as "${UNKNOWN_ID}"`,
  412: 'If-Match does not match the current ETag',
  413: 'the body is larger than the limit of 33554432 bytes',
  415: 'the body has the content type "text/html"; it must be application/json or application/x-www-form-urlencoded, in UTF-8',
  416: 'the range begins behind the last of 231 bytes',
  429: 'this account makes more requests than it may; try again in 2 s',
  500: 'the request failed inside the server',
  501: 'have needs a storage backend; this service keeps its objects in a store of the host',
  503: 'the server has no memory left for this request; try again shortly',
  507: 'the storage is full; nothing of this request was stored',
}

const OWN_HEADERS: Readonly<Record<number, Headers>> = {
  412: required('ETag', SHARED_HEADERS.ETag),
  416: { 'Content-Range': headerRef('Content-Range'), ...required('Accept-Ranges', HEADERS['Accept-Ranges']) },
}

/** The error responses of an endpoint: the common ones and these codes, those of one status together. */
export function faults(codes: readonly ServiceErrorCode[], messages: Readonly<Record<number, string>> = {}): Responses {
  const byStatus = new Map<number, ServiceErrorCode[]>()
  for (const code of [...ALWAYS, ...codes]) {
    const status = ERROR_STATUS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const said = { ...MESSAGES, ...messages }
  const cases = [...byStatus].map(([status, same]) => ({
    codes: same,
    message: said[status],
    ...(same.includes('objects_missing') && messages[status] === undefined ? { ids: [UNKNOWN_ID] } : {}),
  }))
  return errorResponses(cases, OWN_HEADERS)
}
