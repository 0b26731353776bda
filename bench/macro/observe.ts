import { performance } from 'node:perf_hooks'
import type { Report } from '../load/job.ts'
import type { Running } from '../load/client.ts'
import type { Bench } from './bench.ts'
import { peakResidentMb, processCpuSeconds, resetPeakMemory } from './machine.ts'
import { type FigureName, percentile } from './results.ts'

export type Figures = Partial<Record<FigureName, number>>

/** What the requests carried. */
export interface Carried {
  /** JSON in all of them. */
  readonly jsonBytes?: number
  /** Ids that were asked about in all of them. */
  readonly ids?: number
  /** Objects in all of them. */
  readonly objects?: number
}

const GIGABYTE = 1e9
const MEGABYTE = 1e6
const HEALTH_INTERVAL_MS = 25

/** Runs requests and measures the server meanwhile, as far as it is on this machine. */
export async function observe(
  bench: Bench,
  work: () => Promise<Report>,
  carriedBy: Carried | ((report: Report) => Carried) = {},
): Promise<Figures & { readonly wallSeconds: number }> {
  const { pid } = bench.server
  await loopDelay(bench)
  if (pid !== undefined) resetPeakMemory(pid)
  const health = await beginHealth(bench)
  const cpuBefore = pid === undefined ? 0 : processCpuSeconds(pid)
  const report = await work()
  const carried = typeof carriedBy === 'function' ? carriedBy(report) : carriedBy
  const cpu = pid === undefined ? undefined : processCpuSeconds(pid) - cpuBefore
  const peak = pid === undefined ? undefined : peakResidentMb(pid)
  const figures = { ...reportFigures(report, carried), ...(peak === undefined ? {} : { serverPeakResidentMb: peak }) }
  return {
    ...figures,
    ...(cpu === undefined ? {} : cpuFigures(cpu, carried)),
    ...(await healthFigures(health)),
    ...(await loopDelay(bench)),
  }
}

function reportFigures(report: Report, { jsonBytes, ids }: Carried): Figures & { readonly wallSeconds: number } {
  const times = report.timings.map(({ totalMs }) => totalMs)
  return {
    wallSeconds: report.seconds,
    wireBytes: report.bytes,
    requestsPerSecond: report.timings.length / report.seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    firstByteMs: percentile(
      report.timings.map(({ firstByteMs }) => firstByteMs),
      0.5,
    ),
    ...(jsonBytes === undefined ? {} : { jsonMbPerSecond: jsonBytes / MEGABYTE / report.seconds }),
    ...(ids === undefined ? {} : { idsPerSecond: ids / report.seconds }),
  }
}

function cpuFigures(serverCpuSeconds: number, { jsonBytes, ids, objects }: Carried): Figures {
  return {
    serverCpuSeconds,
    ...(jsonBytes === undefined ? {} : { serverCpuSecondsPerGb: serverCpuSeconds / (jsonBytes / GIGABYTE) }),
    ...(objects === undefined ? {} : { serverCpuMicrosecondsPerObject: (serverCpuSeconds * 1e6) / objects }),
    ...(ids === undefined || serverCpuSeconds === 0 ? {} : { idsPerCpuSecond: ids / serverCpuSeconds }),
  }
}

async function beginHealth(bench: Bench): Promise<Running | undefined> {
  if (bench.server.pid === undefined) return undefined
  return await bench.healthClient.begin({
    origin: bench.server.origin,
    connections: 1,
    exchanges: [{ method: 'GET', path: '/healthz' }],
    total: Infinity,
    intervalMs: HEALTH_INTERVAL_MS,
  })
}

async function healthFigures(health: Running | undefined): Promise<Figures> {
  const times = (await health?.stop())?.timings.map(({ totalMs }) => totalMs) ?? []
  return times.length === 0 ? {} : { healthP50Ms: percentile(times, 0.5), healthP99Ms: percentile(times, 0.99) }
}

/** The delay of the event loop since it was last asked for. */
async function loopDelay({ server }: Bench): Promise<Figures> {
  if (server.metricsUrl === undefined) return {}
  const text = await (await fetch(server.metricsUrl)).text()
  const seconds = (name: string): number =>
    Number(new RegExp(`^nodejs_eventloop_lag_${name}_seconds ([^\\s]+)`, 'm').exec(text)?.[1])
  const [p99, max] = [seconds('p99'), seconds('max')]
  if (Number.isNaN(p99) || Number.isNaN(max)) return {}
  return { eventLoopDelayP99Ms: p99 * 1_000, eventLoopDelayMaxMs: max * 1_000 }
}

/** Milliseconds that a function takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}
