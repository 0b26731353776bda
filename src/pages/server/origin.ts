/** What of a request tells where in the browser it comes from. */
export type FetchSource = Pick<Headers, 'get'>

/**
 * Whether an unsafe request comes from one of our own pages. Browsers say so in `Sec-Fetch-Site` (W3C Fetch Metadata, section 2.4) where the connection
 * is trustworthy, and in `Origin` (RFC 6454, section 7); what is said must be right, and one of them must be said. `ownOrigin` is for proxies that
 * change `Host`.
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

/** Whether a safe request may be answered by who the cookie says it is: it is ours, somebody typed it, or it opens a page. Scripts of other sites get nothing. */
export function mayRead(headers: FetchSource): boolean {
  const site = headers.get('sec-fetch-site')
  if (site === null || site === 'same-origin' || site === 'none') return true
  return headers.get('sec-fetch-mode') === 'navigate' && headers.get('sec-fetch-dest') === 'document'
}

/** Whether the browser has our pages by https: what it says itself holds behind proxies too. */
export function isSecure(headers: FetchSource): boolean {
  return headers.get('origin')?.startsWith('https://') === true
}

/** With its port, unless that is the scheme's own; `''` for what is no origin of a page. */
function hostOf(origin: string): string {
  return /^https?:\/\/([^/?#@]+)$/.exec(origin.toLowerCase())?.[1] ?? ''
}
