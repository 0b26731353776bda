/** Figures of several repetitions. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly values: readonly number[]
}

/** Every figure that a row may have. */
export type FigureName =
  | 'wallSeconds'
  | 'jsonMbPerSecond'
  | 'requestsPerSecond'
  | 'idsPerSecond'
  | 'p50Ms'
  | 'p99Ms'
  | 'firstByteMs'
  | 'wireBytes'
  | 'serverCpuSeconds'
  | 'serverCpuSecondsPerGb'
  | 'serverCpuMicrosecondsPerObject'
  | 'idsPerCpuSecond'
  | 'serverPeakResidentMb'
  | 'addedResidentMb'
  | 'eventLoopDelayP99Ms'
  | 'eventLoopDelayMaxMs'
  | 'healthP50Ms'
  | 'healthP99Ms'
  | 'slowestToFastest'
  | 'timesAlone'
  | 'timesAloneAtFirst'
  | 'refused'
  | 'diskBytesPerJsonByte'
  | 'growth'
  | 'repeatedCpuSeconds'
  | 'singleP99Ms'
  | 'listP99Ms'
  | 'uploadP99Ms'

export interface FigureKind {
  readonly unit: string
  readonly better: 'higher' | 'lower'
  readonly title: string
}

/** The unit of every figure, by its name. */
export const FIGURES: Readonly<Record<FigureName, FigureKind>> = {
  wallSeconds: { unit: 's', better: 'lower', title: 'wall time' },
  jsonMbPerSecond: { unit: 'MB/s', better: 'higher', title: 'JSON' },
  requestsPerSecond: { unit: '/s', better: 'higher', title: 'requests' },
  idsPerSecond: { unit: '/s', better: 'higher', title: 'ids' },
  p50Ms: { unit: 'ms', better: 'lower', title: 'p50' },
  p99Ms: { unit: 'ms', better: 'lower', title: 'p99' },
  firstByteMs: { unit: 'ms', better: 'lower', title: 'first byte' },
  wireBytes: { unit: 'bytes', better: 'lower', title: 'on the wire' },
  serverCpuSeconds: { unit: 's', better: 'lower', title: 'server CPU' },
  serverCpuSecondsPerGb: { unit: 's/GB', better: 'lower', title: 'server CPU' },
  serverCpuMicrosecondsPerObject: { unit: 'µs', better: 'lower', title: 'CPU an object' },
  idsPerCpuSecond: { unit: '/s', better: 'higher', title: 'ids a CPU second' },
  serverPeakResidentMb: { unit: 'MB', better: 'lower', title: 'peak memory' },
  addedResidentMb: { unit: 'MB', better: 'lower', title: 'memory added' },
  eventLoopDelayP99Ms: { unit: 'ms', better: 'lower', title: 'loop delay p99' },
  eventLoopDelayMaxMs: { unit: 'ms', better: 'lower', title: 'loop delay max' },
  healthP50Ms: { unit: 'ms', better: 'lower', title: '/healthz p50' },
  healthP99Ms: { unit: 'ms', better: 'lower', title: '/healthz p99' },
  slowestToFastest: { unit: 'x', better: 'lower', title: 'slowest client to fastest' },
  timesAlone: { unit: 'x', better: 'lower', title: 'time beside the others to time alone' },
  timesAloneAtFirst: { unit: 'x', better: 'lower', title: 'the same while they begin' },
  refused: { unit: 'requests', better: 'lower', title: 'answered 503' },
  diskBytesPerJsonByte: { unit: 'x', better: 'lower', title: 'bytes on disk for each byte of JSON' },
  growth: { unit: 'x', better: 'lower', title: 'cost for each object, large model to small' },
  repeatedCpuSeconds: { unit: 's', better: 'lower', title: 'server CPU, the second time' },
  singleP99Ms: { unit: 'ms', better: 'lower', title: 'single, p99' },
  listP99Ms: { unit: 'ms', better: 'lower', title: 'list, p99' },
  uploadP99Ms: { unit: 'ms', better: 'lower', title: 'upload, p99' },
}

/** The same work done by something else in the same rounds: the figure of the row in its unit, and the ratio to it. */
export interface Reference {
  readonly name: string
  readonly figure: Spread
  readonly ratio: Spread
}

export interface Target {
  /** The aim in words. */
  readonly aim: string
  /** The median that was compared with it. */
  readonly figure: number
  /** Depends on the speed of the machine. */
  readonly isAbsolute: boolean
  /** `uncounted`: an absolute figure in a run on a machine that was too slow or in use. */
  readonly verdict: 'met' | 'not met' | 'uncounted'
}

/** The machine while a row was measured, as shares of its processor time. */
export interface Noise {
  readonly stealShare: number
  /** Programs that have nothing to do with the benchmark. */
  readonly othersShare: number
  /** How often the row was measured; the quietest attempt counts. */
  readonly attempts: number
}

export interface Row {
  /** The same in every run, such as `single/geometry-100k/32-clients`. */
  readonly id: string
  /** What `--rows` chooses. */
  readonly family: string
  readonly title: string
  readonly dataset: string
  /** The figure by which the row is judged. */
  readonly headline: FigureName
  readonly figures: Partial<Readonly<Record<FigureName, Spread>>>
  readonly references: readonly Reference[]
  readonly targets: readonly Target[]
  readonly noise: Noise
}

export interface DatasetSummary {
  readonly name: string
  readonly profile: string
  readonly objects: number
  readonly jsonBytes: number
  readonly compressionRatio: number
}

/** What a run writes; `format` and `version` tell whether a reader knows it. */
export interface Results {
  readonly format: 'stowage-benchmark'
  readonly version: 1
  readonly startedAt: string
  readonly seconds: number
  readonly mode: 'short' | 'full' | 'chosen'
  readonly server: string
  readonly machine: {
    readonly processor: string
    readonly cores: number
    readonly memoryBytes: number
    readonly node: string
    /** Of `gunzip` on one core, of the geometry profile or else of any dataset. */
    readonly gunzipMbPerSecond: number
    readonly stealShare: number
    readonly othersShare: number
    /** Whether others used the machine so much that its figures say little. */
    readonly busy: boolean
  }
  readonly datasets: readonly DatasetSummary[]
  readonly rows: readonly Row[]
  readonly skipped: readonly { readonly row: string; readonly reason: string }[]
}

export const RESULTS_VERSION = 1

export function spread(values: readonly number[]): Spread {
  if (values.length === 0) throw new RangeError('a spread needs values')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const median = sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  return { median, min: sorted[0], max: sorted[sorted.length - 1], values }
}

/** The value below which this share of all lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}
