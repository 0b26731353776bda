/// <reference types="node" preserve="true" />

/**
 * Prometheus metrics of a service.
 *
 * @module stowage/metrics
 *
 * @example
 * import { Registry } from 'prom-client'
 * import { createObjectService, openAccess } from 'stowage'
 * import { memoryBackend } from 'stowage/memory'
 * import { createMetrics } from 'stowage/metrics'
 *
 * const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
 * const registry = new Registry()
 * createMetrics({ registry, service })
 * console.log(await registry.metrics())
 */

export { createMetrics, type Metrics, type MetricsOptions } from './metrics.ts'
