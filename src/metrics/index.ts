/// <reference types="node" preserve="true" />

export { createMetrics, type Metrics, type MetricsOptions } from './metrics.ts'
