import { setTimeout as delay } from 'node:timers/promises'
import type { Exchange, Report, Timing } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import { type Dataset, randomIds } from '../dataset.ts'
import { type Family, needsOwnServer } from '../family.ts'
import { peakResidentMb, processCpuSeconds, residentMb, resetPeakMemory } from '../machine.ts'
import { observe } from '../observe.ts'
import { percentile } from '../results.ts'
import { figure, type Round } from '../row.ts'
import { untilPlanned } from './graphs.ts'

const SLOW_BYTES_PER_SECOND = 20_000
const READERS = { smoke: [10], short: [500], full: [10, 100, 500] } as const
const SEED = 17
/** One alone is over so soon that its time says little. */
const DOWNLOADS = 20
const CALM_LOOK_MS = 500
const CALM_SHARE = 0.05
const CALM_MS_MAX = 60_000

export const slowReaders: Family = {
  name: 'slow-readers',
  description: 'a recursive download beside 10, 100 and 500 readers that take 20 KB a second',
  missing: needsOwnServer,
  plans: async (bench, dataset, extent) => {
    const projectId = await bench.held(dataset)
    const exchange = bench.graph(projectId, dataset.first.rootId)
    await untilPlanned(bench, exchange)
    return READERS[extent].map((readers) => ({
      variant: `${readers}-readers`,
      title: `beside ${readers} slow readers`,
      headline: 'addedResidentMb' as const,
      repetitions: 1,
      aims: [
        { aim: 'at most 64 MB more than idle connections', of: figure('addedResidentMb'), atMost: 64 },
        { aim: 'another download within 2 times its time alone', of: figure('timesAlone'), atMost: 2 },
        { aim: 'no reader refused', of: figure('refused'), atMost: 0 },
        { aim: '/healthz p99 under 50 ms', of: figure('healthP99Ms'), atMost: 50, isAbsolute: true },
      ],
      round: async () => await besideReaders(bench, dataset, exchange, readers),
    }))
  },
}

export const mixed: Family = {
  name: 'mixed',
  description: 'uploads, singles, lists and recursive downloads at the same time',
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const exchanges = mixture(bench, dataset, projectId)
    return [
      {
        title: 'mixed load, 8 clients',
        headline: 'requestsPerSecond',
        round: async () => {
          let timings: readonly Timing[] = []
          const figures = await observe(bench, async () => {
            const job = { connections: 8, exchanges, total: Infinity, durationMs: 2 * bench.durationMs }
            const report = await bench.run(job)
            timings = report.timings
            return report
          })
          return {
            figures: {
              ...figures,
              singleP99Ms: slowest(timings, 'single'),
              listP99Ms: slowest(timings, 'list'),
              uploadP99Ms: slowest(timings, 'upload'),
            },
          }
        },
      },
    ]
  },
}

async function besideReaders(bench: Bench, dataset: Dataset, exchange: Exchange, readers: number): Promise<Round> {
  const { pid } = bench.server
  if (pid === undefined) throw new TypeError('the memory of the server is not known')
  const { origin } = bench.server
  const job = { connections: 1, exchanges: [exchange], total: DOWNLOADS }
  // The first downloads of a server are slower, and would flatter those beside the readers.
  await bench.run(job)
  const alone = await observe(bench, async () => await bench.run(job))
  const idle = await bench.besideClient.begin({ origin, connections: readers, exchanges: [], idle: true })
  await delay(bench.settleMs)
  const idleMb = residentMb(pid)
  await idle.stop()
  resetPeakMemory(pid)
  const slow = await bench.besideClient.begin({
    origin,
    connections: readers,
    exchanges: [exchange],
    total: readers,
    readBytesPerSecondMax: SLOW_BYTES_PER_SECOND,
  })
  let report: Report | undefined
  try {
    await delay(bench.settleMs)
    const atFirst = await bench.client.runAnyStatus({ origin, ...job })
    await untilCalm(pid)
    const settledMb = peakResidentMb(pid)
    let another: readonly Timing[] = []
    const figures = await observe(
      bench,
      async () => {
        const download = await bench.client.runAnyStatus({ origin, ...job })
        another = download.timings
        return download
      },
      { jsonBytes: dataset.first.lineBytes * DOWNLOADS },
    )
    const peakMb = Math.max(settledMb, figures.serverPeakResidentMb ?? 0)
    report = await slow.stop()
    const refused = [...atFirst.timings, ...another, ...report.timings].filter(({ status }) => status === 503).length
    return {
      figures: {
        ...figures,
        addedResidentMb: peakMb - idleMb,
        timesAlone: figures.wallSeconds / alone.wallSeconds,
        timesAloneAtFirst: atFirst.seconds / alone.wallSeconds,
        refused,
      },
    }
  } finally {
    if (report === undefined) await slow.stop()
  }
}

/**
 * Waits until the server has little to do. The operating systems buffer megabytes for each client, and the server sends
 * at full speed until these buffers are full. Rejects if that takes longer than a minute.
 */
async function untilCalm(pid: number): Promise<void> {
  for (let waitedMs = 0; waitedMs < CALM_MS_MAX; waitedMs += CALM_LOOK_MS) {
    const before = processCpuSeconds(pid)
    await delay(CALM_LOOK_MS)
    if ((processCpuSeconds(pid) - before) * 1_000 < CALM_LOOK_MS * CALM_SHARE) return
  }
  throw new Error(`the server is still busy ${CALM_MS_MAX} ms after the slow readers began`)
}

/** For each recursive download, 8 lists of 200 ids, 2 uploads of what is held, and 32 singles. */
function mixture(bench: Bench, dataset: Dataset, projectId: string): readonly Exchange[] {
  const ids = dataset.ids()
  const uploads = bench.uploads(projectId, dataset.first)
  return Array.from({ length: 8 }, (_, turn) => [
    { ...bench.graph(projectId, dataset.first.rootId), kind: 'graph' },
    ...randomIds(ids, 32, SEED + turn).flatMap((id, at) => [
      { ...bench.single(projectId, id), kind: 'single' },
      ...(at % 4 === 0 ? [{ ...bench.list(projectId, randomIds(ids, 200, SEED + at)), kind: 'list' }] : []),
      ...(at % 16 === 0 ? [uploads[(turn * 2 + at / 16) % uploads.length]] : []),
    ]),
  ]).flat()
}

function slowest(timings: readonly Timing[], kind: string): number {
  const times = timings.filter((timing) => timing.kind === kind).map(({ totalMs }) => totalMs)
  return times.length === 0 ? 0 : percentile(times, 0.99)
}
