import { type Command, InvalidArgumentError, Option } from 'commander'
import type { RequestRate } from '../../access/request-rate.ts'
import { ClientAddresses, type TrustProxy } from '../../http/client-address.ts'
import type { ConnectionLimitEvent, ConnectionLimitOptions } from '../../http/connection-limits.ts'
import type { Logger } from '../../logger.ts'
import { positiveInteger } from '../common/options.ts'

/** The options of `stowage serve` about connections. */
export interface ConnectionServeOptions {
  readonly connectionsMax: number
  readonly waitingPerAddressMax: number
  readonly requestsPerAddressMax: number
  readonly requestsPerSecond?: number
  readonly requestBurst?: number
  readonly trustProxy?: TrustProxy['proxies']
  readonly proxyHeader: NonNullable<TrustProxy['header']>
}

const LOG_INTERVAL_MS = 10_000

export function addConnectionOptions(command: Command): void {
  command
    .addOption(
      new Option('--connections-max <n>', 'connections at a time; beyond that the longest waiting one is closed')
        .argParser(positiveInteger)
        .default(1_000),
    )
    .addOption(
      new Option(
        '--waiting-per-address-max <n>',
        'connections of one address without a complete request; beyond that the longest waiting one is closed',
      )
        .argParser(positiveInteger)
        .default(100),
    )
    .addOption(
      new Option('--requests-per-address-max <n>', 'requests of one address at a time; more are answered 503')
        .argParser(positiveInteger)
        .default(250),
    )
    .addOption(
      new Option(
        '--requests-per-second <n>',
        'requests of one account (the subject of its tokens), over time; more are answered 429 (default: any number)',
      ).argParser(positiveInteger),
    )
    .addOption(
      new Option(
        '--request-burst <n>',
        "requests of one account that may arrive at once (default: ten seconds' worth)",
      ).argParser(positiveInteger),
    )
    .addOption(
      new Option(
        '--trust-proxy <proxies>',
        'proxies that may name the address of the client: addresses and networks (loopback, 10.0.0.0/8), or a number of hops',
      ).argParser(trustedProxies),
    )
    .addOption(
      new Option('--proxy-header <name>', 'the header in which trusted proxies name it')
        .choices(['x-forwarded-for', 'forwarded'])
        .default('x-forwarded-for'),
    )
}

/** `2` is a number of hops, all else a list of addresses. */
function trustedProxies(text: string): TrustProxy['proxies'] {
  const proxies = /^\d+$/.test(text) ? Number(text) : text.split(',').map((proxy) => proxy.trim())
  try {
    void new ClientAddresses({ proxies })
    return proxies
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/** How often each bound on connections was met since the server started. */
export type ConnectionLimitHits = Map<ConnectionLimitEvent['limit'], number>

export function connectionLimitsOf(
  options: ConnectionServeOptions,
  logger: Logger,
  hits: ConnectionLimitHits,
): ConnectionLimitOptions {
  const { connectionsMax, waitingPerAddressMax, requestsPerAddressMax, trustProxy, proxyHeader } = options
  const log = sparingly(logger)
  return {
    connectionsMax,
    waitingPerAddressMax,
    requestsPerAddressMax,
    onLimit: (event) => {
      hits.set(event.limit, (hits.get(event.limit) ?? 0) + 1)
      log(event)
    },
    ...(trustProxy === undefined ? {} : { trustProxy: { proxies: trustProxy, header: proxyHeader } }),
  }
}

/** The request rate of the service. */
export function requestRateOf({ requestsPerSecond, requestBurst }: ConnectionServeOptions): RequestRate | undefined {
  if (requestsPerSecond === undefined) return undefined
  return { requestsPerSecond, ...(requestBurst === undefined ? {} : { burst: requestBurst }) }
}

/** At most one line for each bound every ten seconds: ten thousand refusals must not fill the disk. */
function sparingly(logger: Logger): (event: ConnectionLimitEvent) => void {
  const told = new Map<string, { sinceMs: number; times: number }>()
  return ({ limit, address }) => {
    const last = told.get(limit) ?? { sinceMs: -Infinity, times: 0 }
    last.times++
    told.set(limit, last)
    if (performance.now() - last.sinceMs < LOG_INTERVAL_MS) return
    logger.warn?.({ limit, address, times: last.times }, 'connections or requests were refused at a bound')
    told.set(limit, { sinceMs: performance.now(), times: 0 })
  }
}
