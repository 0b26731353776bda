import type { Server } from 'node:http'
import type { ObjectService } from '../../service/object-service.ts'
import type { ConnectionLimitHits } from './connection-options.ts'
import { operationsListener } from './health-and-metrics.ts'
import { boundedServer, listen } from './http-server.ts'
import type { OperationsOptions } from './operations-options.ts'
import type { Readiness } from './readiness.ts'

/** The line that is printed about it. */
export interface OperationsLine {
  readonly healthUrl?: string
  readonly metricsUrl?: string
}

/** The usual port of exporters for Prometheus. */
const OPERATIONS_PORT = 9_464
/** Its clients ask from one or two addresses, a few times a minute. */
const LIMITS = { connectionsMax: 64, waitingPerAddressMax: 16, requestsPerAddressMax: 16 }

/** The listener for health and metrics, if enabled, once it accepts connections. */
export async function startOperations(
  service: ObjectService,
  readiness: Readiness,
  options: OperationsOptions,
  hits: ConnectionLimitHits,
): Promise<{ readonly server?: Server; readonly line: OperationsLine }> {
  const { health, metrics, metricsHost } = options
  if (health === undefined && metrics === undefined) return { line: {} }
  const server = boundedServer(operationsListener(service, readiness, metrics === undefined ? undefined : hits), LIMITS)
  const port = [health, metrics].find((chosen) => typeof chosen === 'number') ?? OPERATIONS_PORT
  const url = await listen(server, { host: metricsHost, port })
  return {
    server,
    line: { healthUrl: `${url}/healthz`, ...(metrics === undefined ? {} : { metricsUrl: `${url}/metrics` }) },
  }
}
