import type { RequestListener } from 'node:http'
import { BlockList, isIPv6 } from 'node:net'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { AutomationExtension } from '../../automation-server/automation.ts'
import { pages, type PagesExtension } from '../../pages/pages.ts'
import type { StoredCredentials } from '../common/shared-storage.ts'
import { storedSignInCodes } from '../../pages/stored-codes.ts'
import { storedSessionKeys } from '../../pages/session-keys.ts'

/** The options of `stowage serve` about pages. */
export interface PagesServeOptions {
  readonly host: string
  /** By default for this machine alone. */
  readonly pages?: boolean
  /** Scheme, host and port of the address that browsers use, behind a proxy. */
  readonly origin?: string
}

/** The variable from which client commands take their token. */
const TOKEN_VARIABLE = 'STOWAGE_TOKEN'
const WEB = '/web'

export function addPages(command: Command): void {
  command
    .addOption(
      new Option('--pages', 'serve the web pages at /web, to other machines too (default: only if bound to localhost)'),
    )
    .addOption(new Option('--no-pages', 'serve none'))
    .addOption(
      new Option(
        '--origin <url>',
        'the address that browsers use, such as https://models.example, behind a proxy',
      ).argParser(originOf),
    )
}

/** The pages that a server is to have, if any. What keeps people signed in is stored with the tokens. */
export function pagesOf(
  { host, origin, pages: wanted = isLoopback(host) }: PagesServeOptions,
  automation: AutomationExtension,
  { credentials, sealed }: StoredCredentials,
): PagesExtension | undefined {
  if (!wanted) return undefined
  return pages({
    automation,
    origin,
    sessionKeys: () => storedSessionKeys(credentials),
    ...(sealed === undefined ? {} : { signInCodes: storedSignInCodes(sealed) }),
  })
}

export interface PagesLine {
  readonly pagesUrl?: string
  /** A link that signs in once, within five minutes, with the token of the environment. */
  readonly signInUrl?: string
}

/**
 * The line about pages. `url` is the server's, with its prefix; with `origin`, links lead there instead, to the same
 * paths.
 */
export async function pagesLine(web: PagesExtension | undefined, url: string, origin?: string): Promise<PagesLine> {
  if (web === undefined) return {}
  const token = process.env[TOKEN_VARIABLE] ?? ''
  const base = origin ?? new URL(url).origin
  return {
    pagesUrl: `${base}${url.slice(new URL(url).origin.length)}${WEB}`,
    ...(token === '' ? {} : { signInUrl: new URL(await web.signInLink({ token }), base).href }),
  }
}

/** People copy addresses with a trailing slash, so it is accepted; a path is not, as `--prefix` sets that. */
function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isOrigin = url !== undefined && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`
  if (!isOrigin) throw new InvalidArgumentError('It must be an origin, such as https://models.example, without a path.')
  return url.origin
}

/** Sends browsers that ask for the beginning of everything to the pages. */
export function withHome(web: PagesExtension | undefined, prefix: string, next: RequestListener): RequestListener {
  if (web === undefined) return next
  const pathPrefixes = new Set(['/', prefix, `${prefix}/`])
  return (req, res) => {
    const isPlain = (req.method === 'GET' || req.method === 'HEAD') && pathPrefixes.has(req.url ?? '')
    if (!isPlain || req.headers.accept?.includes('text/html') !== true) next(req, res)
    else res.writeHead(303, { Location: `${prefix}${WEB}`, 'Cache-Control': 'no-store', Vary: 'Accept' }).end()
  }
}

/** Whether an address is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  const loopback = new BlockList()
  loopback.addSubnet('127.0.0.0', 8, 'ipv4')
  loopback.addAddress('::1', 'ipv6')
  return loopback.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')
}
