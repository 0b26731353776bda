import { mkdir } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import type { ProfileName } from '../model/profiles.ts'
import { startNginx } from '../nginx.ts'
import { Bench } from './bench.ts'
import { type Dataset, prepareDataset } from './dataset.ts'
import type { Extent, Family } from './family.ts'
import { GROWTH_FAMILIES } from './families.ts'
import { growthRows, memoryRows } from './derived.ts'
import { machineTime, machineUse } from './machine.ts'
import { gunzipRate } from './references.ts'
import { type DatasetSummary, percentile, type Results, RESULTS_VERSION, type Row } from './results.ts'
import { isQuiet, measureRow, type RowPlan, STEAL_SHARE_MAX } from './row.ts'
import { generatedModel, modelFile, type ModelSource } from './source.ts'
import { tableOf } from './table.ts'
import { remoteServer, startTested, type TestedServer } from './tested-server.ts'

export interface MeasureOptions {
  readonly families: readonly Family[]
  /** Also measures how costs grow from a small model to a large one, as `full` does. */
  readonly growth?: boolean
  readonly full: boolean
  /** The variants of each row. */
  readonly extent: Extent
  /** A comma-separated list was given: only those rows are measured. */
  readonly rows: string
  readonly scratch: string
  readonly datasetsFolder: string
  readonly objects?: number | undefined
  readonly profile?: ProfileName | undefined
  readonly repetitions?: number | undefined
  /** Attempts at a row while others use the machine, at most. */
  readonly attempts?: number | undefined
  /** A model file of the user's, and its root. */
  readonly model?: string | undefined
  readonly root?: string | undefined
  /** A module that exports `backend({ path })`. */
  readonly backend?: string | undefined
  /** Another server of the contract. */
  readonly server?: string | undefined
  readonly token: string
  readonly project?: string | undefined
  readonly say: (line: string) => void
}

const OBJECTS = 100_000
const SMALL_OBJECTS = 10_000
const LARGE_OBJECTS = 1_000_000
const LARGE_REPETITIONS = 2
/** References slower than this tell that the absolute targets do not count. */
const GUNZIP_MB_PER_SECOND_MIN = 200
/** Rows of both profiles; the others are measured with geometry alone, unless all is measured. */
const BOTH_PROFILES = new Set(['upload', 'recursive'])

/** Which families are measured with a model. */
interface Work {
  readonly source: ModelSource
  readonly families: readonly Family[]
}

/** Measures everything that was chosen. A row with a wrong or incomplete answer counts as failed. */
export async function measure(options: MeasureOptions): Promise<Results> {
  const startedAt = new Date()
  const before = machineTime()
  const bench = await openBench(options)
  const rows: Row[] = []
  const skipped: Results['skipped'][number][] = []
  const datasets: DatasetSummary[] = []
  const gunzip: { readonly profile: string; readonly mbPerSecond: number }[] = []
  if (bench.nginx === undefined) skipped.push({ row: 'references to nginx', reason: 'nginx is not installed' })
  try {
    for (const { source, families } of workOf(options)) {
      options.say(`preparing ${source.name}`)
      const dataset = await prepareDataset(source, options.datasetsFolder)
      datasets.push(summaryOf(dataset))
      gunzip.push({ profile: dataset.profile, mbPerSecond: await gunzipRate(dataset) })
      for (const family of families) {
        const reason = family.missing?.(bench)
        const row = `${family.name} [${dataset.name}]`
        if (reason !== undefined) skipped.push({ row, reason })
        else
          await measureFamily(bench, family, dataset, options, rows).catch((error: unknown) => {
            options.say(`${row}: ${String(error)}`)
            skipped.push({ row, reason: `failed: ${String(error)}` })
          })
      }
    }
    rows.push(...growthRows(rows), ...memoryRows(rows))
  } finally {
    await bench.stop()
    await Promise.all([bench.server.stop(), bench.nginx?.stop()])
  }
  // Targets are for models of geometry. Others compress better, and inflate faster.
  const judged = gunzip.filter(({ profile }) => profile === 'geometry')
  const rates = (judged.length > 0 ? judged : gunzip).map(({ mbPerSecond }) => mbPerSecond)
  const gunzipMbPerSecond = percentile(rates, 0.5)
  const use = machineUse(before, machineTime())
  const busy = !isQuiet(use)
  const absoluteCount = !busy && gunzipMbPerSecond >= GUNZIP_MB_PER_SECOND_MIN && use.stealShare < STEAL_SHARE_MAX
  return {
    format: 'stowage-benchmark',
    version: RESULTS_VERSION,
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1_000,
    mode: options.rows !== '' ? 'chosen' : options.full ? 'full' : 'short',
    server: bench.server.description,
    machine: {
      processor: cpus()[0]?.model ?? 'unknown processor',
      cores: availableParallelism(),
      memoryBytes: totalmem(),
      node: process.version,
      gunzipMbPerSecond,
      ...use,
      busy,
    },
    datasets,
    rows: absoluteCount ? rows : rows.map(withoutAbsolute),
    skipped,
  }
}

/** The server, what it is compared with, and its clients. If one of them does not start, the others are stopped. */
async function openBench(options: MeasureOptions): Promise<Bench> {
  const { scratch, extent, full, attempts } = options
  const server = await openServer(options)
  const started: { stop(): Promise<void> }[] = [server]
  try {
    const nginx = await startNginx(scratch)
    if (nginx !== undefined) started.push(nginx)
    return await Bench.start({
      server,
      nginx,
      scratch,
      repetitions: options.repetitions ?? (full ? 5 : 3),
      ...(extent === 'smoke' ? { durationMs: 100, settleMs: 100 } : { durationMs: 1_500, settleMs: 2_000 }),
      attemptsMax: attempts ?? (extent === 'smoke' ? 1 : full ? 3 : 2),
    })
  } catch (error) {
    await Promise.all(started.map((each) => each.stop()))
    throw error
  }
}

async function openServer({ server, token, project, backend, scratch }: MeasureOptions): Promise<TestedServer> {
  if (server !== undefined) return remoteServer({ url: server, token, projectId: project })
  const dataFolder = join(scratch, 'data')
  await mkdir(dataFolder)
  return await startTested(dataFolder, backend)
}

function workOf(options: MeasureOptions): readonly Work[] {
  const { families, model, root, profile, objects, full, growth = full } = options
  if (model !== undefined) return [{ source: modelFile(model, root), families }]
  const generated = (families: readonly Family[], count: number, of: ProfileName = 'geometry'): Work => ({
    source: generatedModel(of, count),
    families,
  })
  const usual = (): readonly Work[] =>
    profile === undefined ? usualWork(options, generated) : [generated(families, objects ?? OBJECTS, profile)]
  const work = families.length === 0 ? [] : usual()
  if (!growth || objects !== undefined || profile === 'building') return work
  return [generated(GROWTH_FAMILIES, SMALL_OBJECTS), ...work, generated(GROWTH_FAMILIES, LARGE_OBJECTS)]
}

function usualWork(
  { families, full, rows, objects = OBJECTS }: MeasureOptions,
  generated: (families: readonly Family[], count: number, of?: ProfileName) => Work,
): readonly Work[] {
  if (rows !== '') return [generated(families, objects)]
  const both = full ? families : families.filter(({ name }) => BOTH_PROFILES.has(name))
  return [generated(families, objects), generated(both, full ? objects : Math.ceil(objects / 2), 'building')]
}

/** Rows that were measured before another one failed are kept. */
async function measureFamily(
  bench: Bench,
  family: Family,
  dataset: Dataset,
  { extent, say }: MeasureOptions,
  rows: Row[],
): Promise<void> {
  for (const plan of await family.plans(bench, dataset, extent)) {
    const aims = isJudged(dataset, family) ? plan.aims : []
    const row = await measureRow(bench, family.name, dataset.name, { ...plan, ...fewerRounds(dataset, plan), aims })
    say(tableOf({ rows: [row], skipped: [] }))
    rows.push(row)
  }
}

/** The largest models vary little, and their rounds take minutes. */
function fewerRounds(
  { first }: Dataset,
  { repetitions = LARGE_REPETITIONS }: RowPlan,
): { readonly repetitions?: number } {
  return first.objects >= LARGE_OBJECTS ? { repetitions: Math.min(repetitions, LARGE_REPETITIONS) } : {}
}

/** The targets are for models of this profile and of at least this size. */
function isJudged({ profile, first }: Dataset, { name }: Family): boolean {
  return profile === 'geometry' && (first.objects >= OBJECTS || name === 'disk')
}

function summaryOf({ name, profile, first, compressionRatio }: Dataset): DatasetSummary {
  return { name, profile, objects: first.objects, jsonBytes: first.jsonBytes, compressionRatio }
}

function withoutAbsolute(row: Row): Row {
  return {
    ...row,
    targets: row.targets.map((target) => (target.isAbsolute ? { ...target, verdict: 'uncounted' } : target)),
  }
}
