import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { StowageError } from '../errors.ts'
import { addressGroup, ClientAddresses, type TrustProxy } from './client-address.ts'
import { ConnectionTable } from './connection-table.ts'
import { errorAnswer } from './error-answer.ts'
import { NodeBody } from './node-body.ts'
import { sendAnswer } from './node-send.ts'

/** Bounds on the connections and requests of one server. */
export interface ConnectionLimitOptions {
  /** Connections at a time. 1,000 by default. */
  readonly connectionsMax?: number
  /**
   * Connections of one address that have sent no complete request: new ones, slow ones, and idle ones that are kept
   * alive. 100 by default.
   */
  readonly waitingPerAddressMax?: number
  /** Requests of one client address at a time. 250 by default. */
  readonly requestsPerAddressMax?: number
  /** None by default: every address is a client's. */
  readonly trustProxy?: TrustProxy
  /**
   * Told of every connection that is closed and every request that is refused at a bound. What it throws is not caught.
   */
  readonly onLimit?: (event: ConnectionLimitEvent) => void
}

/** A connection or request was refused at a limit. */
export interface ConnectionLimitEvent {
  /** The limit that was reached. */
  readonly limit: 'connectionsMax' | 'waitingPerAddressMax' | 'requestsPerAddressMax'
  /** The client's address; `''` if there is none. */
  readonly address: string
}

const CONNECTIONS_MAX = 1_000
const WAITING_PER_ADDRESS_MAX = 100
const REQUESTS_PER_ADDRESS_MAX = 250
const RETRY_AFTER_SECONDS = '2'
/** How much of a refused request is still read, and how long its client may stay idle. */
const REFUSED_BYTES_MAX = 65_536
const REFUSED_STALL_MS = 5_000

/**
 * Keeps one address from taking a server away from the others. Call it once for a server, before it listens. It works
 * below all listeners and frameworks of the server. A connection waits while it contains no complete request. At
 * `waitingPerAddressMax` the connection of that address that has waited longest is closed, and the new one is accepted:
 * a client that opens many closes its own. At `connectionsMax` the longest waiting connection of the address with most
 * of them gives way; if none waits, the new one is closed. At `requestsPerAddressMax` a request receives 503
 * `overloaded` with `Retry-After`. Connections of trusted proxies may wait in any number, and their requests count for
 * the address that they name. IPv6 addresses are counted by 64-bit network. Throws `RangeError` for a bound that is not
 * a positive integer, and `TypeError` for proxies that are not addresses.
 */
export function limitConnections(server: Server | TlsServer, options: ConnectionLimitOptions = {}): void {
  const limiter = new ConnectionLimiter(options)
  // A listener that was added first would come too late for a framework that answers before it.
  const emit = server.emit.bind(server) as (event: string | symbol, ...args: unknown[]) => boolean
  server.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event === 'connection') limiter.connected(args[0] as Socket)
    if (event === 'upgrade' || event === 'connect') limiter.leftHttp((args[0] as IncomingMessage).socket)
    const isRequest = event === 'request' || event === 'checkContinue' || event === 'checkExpectation'
    if (isRequest && limiter.refuses(args[0] as IncomingMessage, args[1] as ServerResponse)) return true
    return emit(event, ...args)
  }
}

class ConnectionLimiter {
  readonly #addresses: ClientAddresses
  readonly #requestsMax: number
  readonly #onLimit: (event: ConnectionLimitEvent) => void
  readonly #table: ConnectionTable
  readonly #requests = new Map<string, number>()
  readonly #known = new WeakSet<ServerResponse>()

  constructor(options: ConnectionLimitOptions) {
    this.#addresses = new ClientAddresses(options.trustProxy)
    this.#requestsMax = positive('requestsPerAddressMax', options.requestsPerAddressMax ?? REQUESTS_PER_ADDRESS_MAX)
    this.#onLimit = options.onLimit ?? ((): void => undefined)
    this.#table = new ConnectionTable(
      {
        connectionsMax: positive('connectionsMax', options.connectionsMax ?? CONNECTIONS_MAX),
        waitingPerAddressMax: positive('waitingPerAddressMax', options.waitingPerAddressMax ?? WAITING_PER_ADDRESS_MAX),
      },
      (limit, socket) => this.#onLimit({ limit, address: this.#addresses.ofConnection(socket) }),
    )
  }

  connected(socket: Socket): void {
    const address = this.#addresses.ofConnection(socket)
    const group = address === '' || this.#addresses.isProxy(address) ? undefined : addressGroup(address)
    this.#table.add(socket, group)
  }

  /** A web socket or a tunnel is in use until it closes. */
  leftHttp(socket: Socket): void {
    this.#table.begin(socket)
  }

  /**
   * Counts the request until its end; answers it if its address has too many. The same request may arrive here twice,
   * as `checkContinue` first.
   */
  refuses(req: IncomingMessage, res: ServerResponse): boolean {
    if (this.#known.has(res)) return false
    this.#known.add(res)
    const { group, leave } = this.#table.begin(req.socket)
    const key = group ?? addressGroup(this.#addresses.of(req))
    const others = this.#requests.get(key) ?? 0
    const isRefused = key !== '' && others >= this.#requestsMax
    if (!isRefused) this.#requests.set(key, others + 1)
    res.once('close', () => {
      leave()
      if (!isRefused) this.#ended(key)
    })
    if (isRefused) {
      this.#onLimit({ limit: 'requestsPerAddressMax', address: this.#addresses.of(req) })
      void refuse(req, res, others)
    }
    return isRefused
  }

  #ended(key: string): void {
    const left = (this.#requests.get(key) ?? 1) - 1
    if (left === 0) this.#requests.delete(key)
    else this.#requests.set(key, left)
  }
}

async function refuse(req: IncomingMessage, res: ServerResponse, others: number): Promise<void> {
  const { signal } = new AbortController()
  const error = new StowageError(
    'overloaded',
    `${others} requests of this address are in progress, the limit; try again shortly`,
    { headers: { 'Retry-After': RETRY_AFTER_SECONDS } },
  )
  const answer = errorAnswer(error)
  const limits = { stallTimeoutMs: REFUSED_STALL_MS, requestBytesMax: REFUSED_BYTES_MAX }
  const body = new NodeBody(req, { signal, ...limits })
  await sendAnswer({
    req,
    res,
    body,
    signal,
    answer: { ...answer, headers: { ...answer.headers, Connection: 'close' } },
    ...limits,
  }).catch(() => res.destroy())
}

function positive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new RangeError(`${name} is ${value}; it must be an integer of 1 or more`)
}
