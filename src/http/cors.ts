/** The browser origins that may send requests (https://fetch.spec.whatwg.org, section 3.3). */
export interface CorsOptions {
  /** `'*'`, a list of origins such as `https://viewer.example`, or a function that decides whether an origin may. */
  readonly origins: '*' | readonly string[] | ((origin: string) => boolean)
  /** Whether browsers may send cookies and client certificates. Not with `'*'`. */
  readonly credentials?: boolean
  /** Seconds for which a browser may keep the answer to a preflight request. 600 by default. */
  readonly maxAgeSeconds?: number
}

export interface CorsPolicy {
  readonly allows: (origin: string) => boolean
  readonly anyOrigin: boolean
  readonly credentials: boolean
  readonly maxAgeSeconds: number
}

const EXPOSED = [
  'Accept-Post',
  'ETag',
  'Content-Length',
  'Content-Range',
  'Accept-Ranges',
  'Content-Disposition',
  'Retry-After',
  'X-Request-Id',
  'Stowage-Objects',
  'Stowage-Missing-Objects',
  'Stowage-Closure',
  'Stowage-Have',
].join(', ')

/**
 * Throws `TypeError` for credentials with any origin, which browsers refuse, and for values that no browser sends as an
 * origin.
 */
export function corsPolicy(options: CorsOptions): CorsPolicy {
  const { origins, credentials = false, maxAgeSeconds = 600 } = options
  if (origins === '*' && credentials)
    throw new TypeError("cors.credentials needs a list of origins; browsers refuse it with '*'")
  if (Array.isArray(origins)) for (const origin of origins as readonly string[]) checkOrigin(origin)
  const allows =
    typeof origins === 'function' ? origins : (origin: string) => origins === '*' || origins.includes(origin)
  return { allows, anyOrigin: origins === '*', credentials, maxAgeSeconds }
}

/**
 * A browser sends only scheme, host and port, in lower case, and omits the default port. Anything else would never
 * match.
 */
function checkOrigin(origin: string): void {
  if (origin === 'null') return
  const url = URL.canParse(origin) ? new URL(origin) : undefined
  const asSent = url === undefined || url.origin === 'null' ? origin : url.origin
  if (url !== undefined && /^[a-z][\w+.-]*:\/\/[^/?#]+$/i.test(origin) && asSent === origin) return
  const better = asSent === origin ? 'it must be like https://viewer.example' : `it must be ${JSON.stringify(asSent)}`
  throw new TypeError(`${JSON.stringify(origin)} is not an origin as browsers send it; ${better}`)
}

/** The origin that asks, if it may. */
export function allowedOrigin(policy: CorsPolicy, origin: string | null): string | undefined {
  return origin !== null && policy.allows(origin) ? origin : undefined
}

/** The headers of any response. `vary` lists the headers that the response already varies by. */
export function corsHeaders(
  policy: CorsPolicy,
  origin: string | undefined,
  vary: string | undefined,
): Record<string, string> {
  if (policy.anyOrigin) return { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': EXPOSED }
  const varyBoth = { Vary: vary === undefined ? 'Origin' : `${vary}, Origin` }
  if (origin === undefined) return varyBoth
  return {
    ...varyBoth,
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Expose-Headers': EXPOSED,
    ...(policy.credentials ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
  }
}

/**
 * The additional headers of a preflight response (https://fetch.spec.whatwg.org, section 3.3); none for an origin that
 * is not allowed, and for plain OPTIONS. Any header may be sent: the token decides what a request may do.
 */
export function preflightHeaders(policy: CorsPolicy, allow: string, headers: Headers): Record<string, string> {
  if (!headers.has('access-control-request-method') || allowedOrigin(policy, headers.get('origin')) === undefined)
    return {}
  const asked = headers.get('access-control-request-headers')
  return {
    'Access-Control-Allow-Methods': allow,
    ...(asked === null ? {} : { 'Access-Control-Allow-Headers': asked }),
    'Access-Control-Max-Age': String(policy.maxAgeSeconds),
  }
}
