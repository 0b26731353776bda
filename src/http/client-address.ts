import type { IncomingMessage } from 'node:http'
import { BlockList, isIP, isIPv4, isIPv6, type Socket } from 'node:net'

/** The proxies that are trusted to say where a request came from. */
export interface TrustProxy {
  /**
   * The addresses and networks of the proxies (`'10.0.0.0/8'`, `'::1'`, or `'loopback'` for this machine), or the
   * number of proxies in front of the server. Use a number only if every connection to the server passes all of them.
   */
  readonly proxies: readonly string[] | number
  /**
   * The header that the proxies set. The other one is not read: a proxy passes it on as the client sent it.
   * `x-forwarded-for` by default.
   */
  readonly header?: 'x-forwarded-for' | 'forwarded'
}

const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1']
const HOPS_MAX = 32
const HEADER_CHARACTERS_MAX = 4_096
/** RFC 7239, section 4: a value is a token or a quoted string. */
const FORWARDED_FOR = /(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^";,\s]*))/i

/** Finds the address that a request came from: the last one that is not a trusted proxy. */
export class ClientAddresses {
  readonly #header: 'x-forwarded-for' | 'forwarded'
  readonly #isTrusted: (address: string, hop: number) => boolean

  /** Throws `TypeError` for proxies that are neither addresses nor a number of hops. */
  constructor(trust: TrustProxy = { proxies: [] }) {
    this.#header = trust.header ?? 'x-forwarded-for'
    this.#isTrusted = typeof trust.proxies === 'number' ? hops(trust.proxies) : networks(trust.proxies)
  }

  /** The other end of a connection; `''` for one without an address, such as a Unix socket. */
  ofConnection(socket: Pick<Socket, 'remoteAddress'>): string {
    return plainAddress(socket.remoteAddress ?? '')
  }

  /** Whether connections from there carry the requests of others. */
  isProxy(address: string): boolean {
    return this.#isTrusted(address, 0)
  }

  /**
   * The client's address; `''` for a connection without one, such as a Unix socket. An invalid address in the header
   * ends the search.
   */
  of(req: Pick<IncomingMessage, 'headers' | 'socket'>): string {
    let address = this.ofConnection(req.socket)
    const forwarded = this.#isTrusted(address, 0) ? forwardedAddresses(req.headers[this.#header], this.#header) : []
    for (let hop = 1; forwarded.length > 0; hop++) {
      const next = plainAddress(forwarded.pop() ?? '')
      if (isIP(next) === 0) break
      address = next
      if (!this.#isTrusted(address, hop)) break
    }
    return address
  }
}

/** The unit of counting: an IPv4 address, or the 64-bit network of an IPv6 client. */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address
  const [head, tail] = address.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0)
    while (groups.length + after < 8) groups.push('0')
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}

function hops(count: number): (address: string, hop: number) => boolean {
  if (!Number.isSafeInteger(count) || count < 0 || count > HOPS_MAX)
    throw new TypeError(`trustProxy names ${count} proxies; it must be an integer from 0 to ${HOPS_MAX}`)
  return (_address, hop) => hop < count
}

function networks(proxies: readonly string[]): (address: string) => boolean {
  // Each address that a list checks becomes an object of Node's, for every request.
  if (proxies.length === 0) return () => false
  const list = new BlockList()
  for (const proxy of proxies) for (const network of proxy === 'loopback' ? LOOPBACK : [proxy]) add(list, network)
  return (address) => {
    const version = isIP(address)
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4')
  }
}

function add(list: BlockList, network: string): void {
  const [address, bits, ...others] = network.split('/')
  const version = isIP(address)
  const bitsMax = version === 6 ? 128 : 32
  const isBits = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax)
  if (version === 0 || !isBits || others.length > 0)
    throw new TypeError(
      `trustProxy names ${JSON.stringify(network)}; it must be an IP address, a network such as 10.0.0.0/8, or loopback`,
    )
  list.addSubnet(address, bits === undefined ? bitsMax : Number(bits), version === 6 ? 'ipv6' : 'ipv4')
}

/** The addresses of a header, the one that the nearest proxy added last. */
function forwardedAddresses(value: string | string[] | undefined, header: TrustProxy['header']): string[] {
  const text = typeof value === 'string' ? value : (value ?? []).join(',')
  if (text === '' || text.length > HEADER_CHARACTERS_MAX) return []
  const entries = text.split(',')
  if (header === 'x-forwarded-for') return entries
  return entries.map((entry) => {
    const [, quoted, plain] = FORWARDED_FOR.exec(entry) ?? []
    return quoted ?? plain ?? ''
  })
}

/** Without a port, brackets, a zone, or the wrapping of an IPv4 address in an IPv6 one. */
function plainAddress(text: string): string {
  const trimmed = text.trim()
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1] ?? trimmed.replace(/^([\d.]+):\d+$/, '$1')
  const address = bare.replace(/%.*$/, '')
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1]
  return mapped !== undefined && isIPv4(mapped) ? mapped : address
}
