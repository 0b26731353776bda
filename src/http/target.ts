/** A request's target, unchanged: no normalization, no decoding. */
export interface Target {
  readonly path: string
  readonly query: string
}

const AUTHORITY = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i

/**
 * Splits a raw target, in origin form or absolute form (RFC 9112 section 3.2), at its first `?`. A fragment is cut off.
 */
export function splitTarget(raw: string): Target {
  const relative = raw.startsWith('/') ? raw : raw.replace(AUTHORITY, '')
  const hash = relative.indexOf('#')
  const whole = hash === -1 ? relative : relative.slice(0, hash)
  const mark = whole.indexOf('?')
  return mark === -1 ? { path: whole, query: '' } : { path: whole.slice(0, mark), query: whole.slice(mark + 1) }
}
