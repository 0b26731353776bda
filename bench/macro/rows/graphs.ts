import type { Exchange, Report } from '../../load/job.ts'
import { type AnswerFile, countLines } from '../answer-files.ts'
import { type Bench, type Form, LINES_GZIP } from '../bench.ts'
import type { Dataset, Version } from '../dataset.ts'
import type { Family } from '../family.ts'
import { type Figures, observe } from '../observe.ts'
import { gunzipRate, gzipRate } from '../references.ts'
import { type Aim, figure, ratioTo, type Round, type RowPlan } from '../row.ts'

/** Downloads of one measurement take about this long together. */
const ROUND_SECONDS = 0.6
const DOWNLOADS_MAX = 40
const MEGABYTE = 1e6

const VERSIONS = {
  short: [[0.05, 'everywhere']],
  full: [
    [0.01, 'everywhere'],
    [0.05, 'everywhere'],
    [0.05, 'in one part'],
    [0.1, 'everywhere'],
  ],
} as const

/** One way to download a graph, and what it is compared with. */
interface Way {
  readonly variant: string
  readonly title: string
  readonly form: Form
  readonly reference: 'nginx' | 'gzip -1' | 'gunzip'
  readonly aims: readonly Aim[]
}

const PLANNED: Way = {
  variant: 'planned',
  title: 'recursive, lines, gzip, plan kept',
  form: LINES_GZIP,
  reference: 'nginx',
  aims: [
    { aim: 'at least 0.6 of nginx', of: ratioTo('nginx'), atLeast: 0.6 },
    { aim: 'under 0.4 CPU s for each GB', of: figure('serverCpuSecondsPerGb'), atMost: 0.4, isAbsolute: true },
  ],
}

const OTHER_WAYS: readonly Way[] = [
  {
    variant: 'array',
    title: 'recursive, JSON array, gzip',
    form: { accept: 'application/json', encoding: 'gzip' },
    reference: 'gzip -1',
    aims: [{ aim: 'at least 1.3 of gzip -1', of: ratioTo('gzip -1'), atLeast: 1.3 }],
  },
  {
    variant: 'lines-identity',
    title: 'recursive, lines, identity',
    form: { accept: 'text/plain', encoding: 'identity' },
    reference: 'gunzip',
    aims: [{ aim: 'at least 1.5 of gunzip', of: ratioTo('gunzip'), atLeast: 1.5 }],
  },
  {
    variant: 'array-identity',
    title: 'recursive, JSON array, identity',
    form: { accept: 'application/json', encoding: 'identity' },
    reference: 'gunzip',
    aims: [],
  },
]

export const recursive: Family = {
  name: 'recursive',
  description: 'a root with everything below it as gzipped lines, its plan kept, against nginx',
  plans: async (bench, dataset) => [await downloadPlan(bench, dataset, dataset.first, PLANNED)],
}

export const forms: Family = {
  name: 'forms',
  description: 'the other formats and codings of a recursive download',
  plans: async (bench, dataset) =>
    await Promise.all(OTHER_WAYS.map(async (way) => await downloadPlan(bench, dataset, dataset.first, way))),
}

export const versions: Family = {
  name: 'versions',
  description: 'recursive downloads of versions with 1, 5 and 10 in 100 objects changed',
  plans: async (bench, dataset, extent) => {
    const plans: RowPlan[] = []
    for (const [changed, place] of VERSIONS[extent === 'full' ? extent : 'short']) {
      if (place !== 'everywhere' && dataset.profile === 'own') continue
      const version = await bench.heldLater(dataset, changed, place)
      const aims = [{ aim: 'at least 0.5 of nginx', of: ratioTo('nginx'), atLeast: 0.5 }]
      const variant = `${Math.round(changed * 100)}-in-100${place === 'everywhere' ? '' : '-in-one-part'}`
      const way = { ...PLANNED, aims, variant, title: `recursive, version with ${version.name}` }
      plans.push(await downloadPlan(bench, dataset, version, way))
    }
    return plans
  },
}

export const manyClients: Family = {
  name: 'clients',
  description: 'recursive downloads to 8 and 32 clients at once, against one client',
  plans: async (bench, dataset, extent) => {
    const projectId = await bench.held(dataset)
    const exchange = bench.graph(projectId, dataset.first.rootId)
    await untilPlanned(bench, exchange)
    return (extent === 'full' ? [8, 32] : [32]).map((clients) => ({
      variant: `${clients}-clients`,
      title: `recursive, ${clients} clients at once`,
      headline: 'jsonMbPerSecond' as const,
      aims: [
        { aim: 'the sum as fast as one client', of: ratioTo('one client'), atLeast: 0.95 },
        { aim: 'slowest within 2 times the fastest', of: figure('slowestToFastest'), atMost: 2 },
      ],
      round: async () => await downloadAtOnce(bench, dataset.first, exchange, clients),
    }))
  },
}

export const resume: Family = {
  name: 'resume',
  description: 'the second half of a recursive download with Range, against nginx',
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const exchange = bench.graph(projectId, dataset.first.rootId)
    await untilPlanned(bench, exchange)
    const saved = await bench.files.save(exchange)
    const range = { Range: `bytes=${Math.floor(saved.bytes / 2)}-` }
    const resumed = { ...exchange, headers: { ...exchange.headers, ...range } }
    const jsonBytes = dataset.first.lineBytes / 2
    return [
      {
        title: 'resume in the middle (Range)',
        headline: 'jsonMbPerSecond',
        round: async () => ({
          figures: await observe(bench, async () => await bench.run({ connections: 1, exchanges: [resumed] }), {
            jsonBytes,
          }),
          references: await nginxRate(bench, saved, jsonBytes, 1, range),
        }),
      },
    ]
  },
}

async function downloadPlan(bench: Bench, dataset: Dataset, version: Version, way: Way): Promise<RowPlan> {
  const projectId = await bench.held(dataset)
  const exchange = bench.graph(projectId, version.rootId, way.form)
  const jsonBytes = way.form.accept === 'text/plain' ? version.lineBytes : version.jsonBytes
  let saved: AnswerFile | undefined
  let total = 1
  return {
    variant: way.variant,
    title: way.title,
    headline: 'jsonMbPerSecond',
    aims: way.aims,
    warm: async () => {
      await untilPlanned(bench, exchange)
      if (saved === undefined) {
        saved = await bench.files.save(exchange)
        await checkComplete(saved, version, way.form)
      }
      const { seconds } = await bench.run({ connections: 1, exchanges: [exchange] })
      total = Math.max(1, Math.min(DOWNLOADS_MAX, Math.ceil(ROUND_SECONDS / seconds)))
    },
    round: async (): Promise<Round> => {
      const run = async (): Promise<Report> => await bench.run({ connections: 1, exchanges: [exchange], total })
      const figures = await observe(bench, run, { jsonBytes: jsonBytes * total, objects: version.objects * total })
      if (way.reference === 'gunzip') return { figures, references: { gunzip: await gunzipRate(dataset) } }
      if (way.reference === 'gzip -1') return { figures, references: { 'gzip -1': await gzipRate(dataset) } }
      if (saved === undefined) throw new TypeError('a round follows the warming')
      return { figures, references: await nginxRate(bench, saved, jsonBytes, total) }
    },
  }
}

/**
 * All clients begin at the same time and download once; one alone, as often, is the reference. Both are observed: the
 * client of `/healthz` takes a part of the processors too.
 */
async function downloadAtOnce(bench: Bench, version: Version, exchange: Exchange, clients: number): Promise<Round> {
  const jsonBytes = version.lineBytes * clients
  const objects = version.objects * clients
  const download = async (connections: number): Promise<Figures & { readonly wallSeconds: number }> => {
    let times: readonly number[] = []
    const run = async (): Promise<Report> => {
      const report = await bench.run({ connections, exchanges: [exchange], total: clients })
      times = report.timings.map(({ totalMs }) => totalMs)
      return report
    }
    const figures = await observe(bench, run, { jsonBytes, objects })
    return { ...figures, slowestToFastest: Math.max(...times) / Math.min(...times) }
  }
  const figures = await download(clients)
  const { wallSeconds } = await download(1)
  return { figures, references: { 'one client': jsonBytes / MEGABYTE / wallSeconds } }
}

/** The same bytes from nginx by the same client. */
export async function nginxRate(
  bench: Bench,
  { reference, bytes }: AnswerFile,
  jsonBytes: number,
  total: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<Readonly<Record<string, number>>> {
  if (reference === undefined) return {}
  const exchange: Exchange = { method: 'GET', path: reference.path, headers }
  const report = await bench.client.run({ origin: reference.origin, connections: 1, exchanges: [exchange], total })
  if (report.bytes > bytes * total) throw new Error('nginx sent other bytes')
  return { nginx: (jsonBytes * total) / MEGABYTE / report.seconds }
}

/** Downloads until a plan is there: a request for the head waits for it. */
export async function untilPlanned(bench: Bench, exchange: Exchange): Promise<void> {
  await bench.run({ connections: 1, exchanges: [exchange] })
  if (bench.server.pid !== undefined) await bench.run({ connections: 1, exchanges: [{ ...exchange, method: 'HEAD' }] })
  await bench.run({ connections: 1, exchanges: [exchange] })
}

async function checkComplete(saved: AnswerFile, version: Version, form: Form): Promise<void> {
  const { lines, bytes } = await countLines(saved.path, form.encoding === 'gzip')
  if (form.accept === 'text/plain' && lines !== version.objects)
    throw new Error(`the download has ${lines} lines, but the model has ${version.objects} objects`)
  if (bytes < version.jsonBytes) throw new Error(`the download has ${bytes} bytes of ${version.jsonBytes}`)
}
