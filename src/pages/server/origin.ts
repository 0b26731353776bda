/** The headers of a request that reveal its origin in the browser. */
export type FetchSource = Pick<Headers, 'get'>

/**
 * Whether an unsafe request comes from one of our own pages. Browsers say so in `Sec-Fetch-Site` (W3C Fetch Metadata,
 * section 2.4) on trustworthy connections, and in `Origin` (RFC 6454, section 7). Each header that is present must be
 * right, and one must be present. `ownOrigin` is for proxies that change `Host`.
 */
export function isFromOwnPage(headers: FetchSource, ownOrigin: string | undefined): boolean {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  if (site !== null && site !== 'same-origin') return false
  if (origin === null) return site !== null
  if (ownOrigin !== undefined) return origin === ownOrigin
  const host = headers.get('host')
  return host === null ? site !== null : hostOf(origin) === host.toLowerCase()
}

/**
 * Whether the cookie may authenticate a safe request: it is ours, a person typed the address, or it opens a page.
 * Scripts of other sites get nothing.
 */
export function mayRead(headers: FetchSource): boolean {
  const site = headers.get('sec-fetch-site')
  if (site === null || site === 'same-origin' || site === 'none') return true
  return headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document'
}

/** Whether the browser reaches our pages by https: the browser's own headers are right behind proxies too. */
export function isSecure(headers: FetchSource): boolean {
  return headers.get('origin')?.startsWith('https://') === true
}

/** With its port, unless it is the scheme's default; `''` if it is not the origin of a page. */
function hostOf(origin: string): string {
  return /^https?:\/\/([^/?#@]+)$/.exec(origin.toLowerCase())?.[1] ?? ''
}
