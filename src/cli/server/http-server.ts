import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isIPv6 } from 'node:net'
import { answerClientErrors } from '../../http/client-errors.ts'
import { type ConnectionLimitOptions, limitConnections } from '../../http/connection-limits.ts'

/** A client has this long to send its headers, from the first byte or the last answer on. */
const HEADERS_TIMEOUT_MS = 20_000
/** And this long for a whole request; that a body makes progress meanwhile, the service itself watches. */
const REQUEST_TIMEOUT_MS = 30 * 60_000
const KEEP_ALIVE_TIMEOUT_MS = 65_000
const HEADERS_MAX = 100
const HEADER_BYTES_MAX = 16_384
/** Time for answers that are complete to reach clients that read slowly, once nothing new is begun. */
const CLOSE_DELAY_MS = 1_000

/** A server that no number of slow or idle clients can exhaust. */
export function boundedServer(listener: RequestListener, limits: ConnectionLimitOptions): Server {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: HEADER_BYTES_MAX,
    },
    listener,
  )
  server.maxHeadersCount = HEADERS_MAX
  answerClientErrors(server)
  limitConnections(server, limits)
  return server
}

/** Resolves with the server's URL once connections are accepted. Port 0 takes a free one. */
export async function listen(
  server: Server,
  address: { readonly host: string; readonly port: number },
): Promise<string> {
  try {
    const listening = once(server, 'listening')
    server.listen(address.port, address.host)
    await listening
  } catch (cause) {
    throw new Error(listenFailure((cause as NodeJS.ErrnoException).code, address), { cause })
  }
  return `http://${isIPv6(address.host) ? `[${address.host}]` : address.host}:${(server.address() as AddressInfo).port}`
}

function listenFailure(
  code: string | undefined,
  { host, port }: { readonly host: string; readonly port: number },
): string {
  const what = `cannot listen on ${host} port ${port}`
  if (code === 'EADDRINUSE')
    return `${what}, which is already in use; choose another with --port, or --port 0 for a free one`
  if (code === 'EACCES') return `${what}, which needs more rights; choose a port above 1023 with --port`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `${what}, which is not an address of this machine; choose one with --host`
  return what
}

/** Accepts no more connections, waits for `finishWork`, and sends the remaining responses. */
export async function stopServing(server: Server, finishWork: () => Promise<void>): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  await finishWork()
  server.closeIdleConnections()
  const farewell = setTimeout(() => server.closeAllConnections(), CLOSE_DELAY_MS)
  await closed
  clearTimeout(farewell)
}
