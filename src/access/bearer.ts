import type { AccessRefusals } from './access.ts'

/** Bytes of the longest token that is looked at. */
export const TOKEN_BYTES_MAX = 8_192

const SCHEME_BYTES_MAX = 64
/** RFC 6750, section 2.1 (`b64token`); the scheme is case-insensitive by RFC 9110, section 11.1. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** The one bearer token of a request; `undefined` if there is none, more than one, or one of more than 8 KB. */
export function bearerToken(headers: Headers): string | undefined {
  const header = headers.get('authorization')
  if (header === null || header.length > TOKEN_BYTES_MAX + SCHEME_BYTES_MAX) return undefined
  const token = BEARER.exec(header)?.[1]
  return token !== undefined && token.length <= TOKEN_BYTES_MAX ? token : undefined
}

/** The refusals of a service whose requests carry bearer tokens (RFC 6750, section 3). */
export const BEARER_REFUSALS: AccessRefusals<unknown> = {
  unauthenticated: ({ headers }) =>
    headers.has('authorization')
      ? {
          message: 'the token in the Authorization header is not valid',
          challenge: 'Bearer realm="stowage", error="invalid_token"',
        }
      : {
          message: 'a token is needed in the header "Authorization: Bearer <token>"',
          challenge: 'Bearer realm="stowage"',
        },
  forbidden: (_principal, _projectId, right) => `this token does not give the right to ${right} in this project`,
}
