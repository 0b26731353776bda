import type { RequestListener, ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'
import { createMetrics } from '../../metrics/index.ts'
import { loadPromClient } from '../../metrics/prom-client.ts'
import type { ObjectService } from '../../service/object-service.ts'
import type { ConnectionLimitHits } from './connection-options.ts'
import type { Readiness } from './readiness.ts'

/** For load balancers: whether the process lives, and whether it can answer requests. */
const LIVE_PATH = '/healthz/live'
const READY_PATHS: ReadonlySet<string> = new Set(['/healthz', '/healthz/ready'])

/**
 * Answers requests for the health of the server, and passes all others on. It reveals nothing but the health, to
 * everybody.
 */
export function withHealth(readiness: Pick<Readiness, 'isReady'>, next: RequestListener): RequestListener {
  return (req, res) => {
    const [path] = (req.url ?? '/').split('?', 1)
    if (path === LIVE_PATH) answerHealth(res, true)
    else if (READY_PATHS.has(path)) void readiness.isReady().then((isReady) => answerHealth(res, isReady))
    else next(req, res)
  }
}

function answerHealth(res: ServerResponse, isWell: boolean): void {
  res.writeHead(isWell ? 200 : 503, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' })
  res.end(JSON.stringify({ status: isWell ? 'ok' : 'unavailable' }))
}

/**
 * The listener for operators: always health, and metrics if enabled, with the connection limits of the server for
 * requests. Throws if `prom-client` is not installed.
 */
export function operationsListener(
  service: ObjectService,
  readiness: Pick<Readiness, 'isReady'>,
  metricsOf?: ConnectionLimitHits,
): RequestListener {
  return withHealth(
    readiness,
    metricsOf ? metricsListener(service, metricsOf) : (_req, res) => void res.writeHead(404).end(),
  )
}

function metricsListener(service: ObjectService, hits: ConnectionLimitHits): RequestListener {
  const { Counter, Registry: NewRegistry, collectDefaultMetrics } = loadPromClient()
  const registry = new NewRegistry()
  collectDefaultMetrics({ register: registry })
  createMetrics({ registry, service })
  void new Counter({
    name: 'stowage_connection_limit_hits_total',
    help: 'Connections that were closed and requests that were refused at a bound on connections.',
    labelNames: ['limit'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [limit, times] of hits) this.inc({ limit }, times)
    },
  })
  return (req, res) => void answerMetrics(registry, req.url ?? '/', res)
}

async function answerMetrics(registry: Registry, url: string, res: ServerResponse): Promise<void> {
  if (url.split('?', 1)[0] !== '/metrics') return void res.writeHead(404).end()
  try {
    const text = await registry.metrics()
    res.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' }).end(text)
  } catch {
    res.writeHead(500).end()
  }
}
