import type { Report } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import { type Dataset, randomIds } from '../dataset.ts'
import type { Family } from '../family.ts'
import { countLines } from '../answer-files.ts'
import { type Carried, observe } from '../observe.ts'
import { type Aim, figure, type RowPlan } from '../row.ts'

const LIST_IDS = 1_000
const NEIGHBOURS = 15_000
/** Different requests, so that no cache of the last answer helps. */
const LISTS = 64
const SINGLES = 4_096
const LARGE_OBJECTS = 1_000_000
const SEED = 11

export const diffs: Family = {
  name: 'diff',
  description: 'diff requests of 1,000 ids, half of them held',
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const exchanges = idLists(dataset, LIST_IDS).map((ids) =>
      bench.diff(
        projectId,
        ids.map((id, at) => (at % 2 === 0 ? id : absent(id))),
      ),
    )
    return [
      {
        title: `diff of ${LIST_IDS} ids, 1 client`,
        headline: 'idsPerSecond',
        aims: [
          { aim: 'at least 100,000 ids a second', of: figure('idsPerSecond'), atLeast: 100_000, isAbsolute: true },
        ],
        ...repeated(bench, exchanges, 1, LIST_IDS),
      },
    ]
  },
}

export const singles: Family = {
  name: 'single',
  description: 'single objects at random, the token checked for each',
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const exchanges = randomIds(dataset.ids(), SINGLES, SEED).map((id) => bench.single(projectId, id))
    const one: Aim = { aim: 'p50 under 0.5 ms', of: figure('p50Ms'), atMost: 0.5, isAbsolute: true }
    const many: Aim = { aim: '5,000 a second', of: figure('requestsPerSecond'), atLeast: 5_000, isAbsolute: true }
    return [
      {
        variant: '1-client',
        title: 'single, 1 client',
        headline: 'p50Ms',
        aims: [one],
        ...repeated(bench, exchanges, 1, 1),
      },
      {
        variant: '32-clients',
        title: 'single, 32 clients',
        headline: 'requestsPerSecond',
        aims: [many],
        ...repeated(bench, exchanges, 32, 1),
      },
    ]
  },
}

export const randomLists: Family = {
  name: 'random-ids',
  description: 'lists of 1,000 random ids as lines, gzip',
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const exchanges = idLists(dataset, LIST_IDS).map((ids) => bench.list(projectId, ids))
    const aims: readonly Aim[] = [
      { aim: '10,000 ids a second on each core', of: figure('idsPerCpuSecond'), atLeast: 10_000, isAbsolute: true },
    ]
    return [1, 4].map((clients) => ({
      variant: clients === 1 ? '1-client' : `${clients}-clients`,
      title: `${LIST_IDS} random ids, ${clients === 1 ? '1 client' : `${clients} clients`}`,
      headline: 'idsPerSecond' as const,
      aims: dataset.first.objects >= LARGE_OBJECTS ? aims : [],
      ...repeated(bench, exchanges, clients, LIST_IDS),
    }))
  },
}

export const neighbours: Family = {
  name: 'neighbours',
  description: 'lists of 15,000 neighbouring ids as lines, gzip, by four clients',
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const all = dataset.ids()
    const count = Math.min(NEIGHBOURS, all.length)
    const starts = [0, 1, 2, 3].map((part) => Math.floor(((all.length - count) * part) / 3))
    const exchanges = starts.map((start) => bench.list(projectId, all.slice(start, start + count)))
    const lineBytes = await Promise.all(
      exchanges.map(async (exchange) => (await countLines((await bench.files.save(exchange)).path, true)).bytes),
    )
    const jsonBytes = (report: Report): number =>
      (report.timings.length / exchanges.length) * lineBytes.reduce((sum, bytes) => sum + bytes, 0)
    const plan = repeated(bench, exchanges, 4, count)
    return [
      {
        title: `${count} neighbouring ids, gzip, 4 clients`,
        headline: 'jsonMbPerSecond',
        aims: [{ aim: 'at least 400 MB/s', of: figure('jsonMbPerSecond'), atLeast: 400, isAbsolute: true }],
        ...plan,
        round: async () => ({
          figures: await observe(
            bench,
            // Whole turns, so that every list counts equally.
            async () => await bench.run({ connections: 4, exchanges, total: exchanges.length * 2 }),
            (report) => ({ ...idsOf(report, count), jsonBytes: jsonBytes(report) }),
          ),
        }),
      },
    ]
  },
}

/** Requests of one kind for some time. */
function repeated(
  bench: Bench,
  exchanges: Parameters<Bench['run']>[0]['exchanges'],
  connections: number,
  idsEach: number,
): Pick<RowPlan, 'warm' | 'round'> {
  const run = async (durationMs: number): Promise<Report> =>
    await bench.run({ connections, exchanges, total: Infinity, durationMs })
  return {
    warm: async () => await run(bench.durationMs / 3),
    round: async () => ({
      figures: await observe(
        bench,
        async () => await run(bench.durationMs),
        (report) => idsOf(report, idsEach),
      ),
    }),
  }
}

function idsOf(report: Report, idsEach: number): Carried {
  const ids = report.timings.length * idsEach
  return { ids, objects: ids }
}

function idLists(dataset: Dataset, count: number): readonly (readonly string[])[] {
  const ids = dataset.ids()
  return Array.from({ length: LISTS }, (_, list) => randomIds(ids, count, SEED + list))
}

/** An id that no object has: its two halves exchanged. */
function absent(id: string): string {
  const half = Math.ceil(id.length / 2)
  return id.slice(half) + id.slice(0, half)
}
