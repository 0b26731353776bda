import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import type { Report } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import { type Dataset, prepareDataset } from '../dataset.ts'
import type { Family } from '../family.ts'
import { observe } from '../observe.ts'
import { figure, type Round } from '../row.ts'
import { generatedModel } from '../source.ts'

const MODEL_OBJECTS = 2_000
const MODELS = { smoke: 1, short: 10, full: 100 } as const
const BYTES_MAX = 0.7

export const disk: Family = {
  name: 'disk',
  description: 'bytes on disk after small models were uploaded and each downloaded once',
  missing: ({ server }) =>
    server.dataFolder === undefined ? 'only for a server that the benchmark starts itself' : undefined,
  plans: async (bench, { profile }, extent) => {
    if (profile !== 'building' && profile !== 'geometry') return []
    const models: Dataset[] = []
    const folder = join(bench.scratch, 'small-models')
    for (let seed = 1; seed <= MODELS[extent]; seed++)
      models.push(await prepareDataset(generatedModel(profile, MODEL_OBJECTS, { seed }), folder))
    return await Promise.resolve([
      {
        title: `disk: ${models.length === 1 ? 'a model' : `${models.length} models`} of 2,000 objects, each downloaded once`,
        headline: 'diskBytesPerJsonByte' as const,
        repetitions: 1,
        aims: [
          { aim: `${BYTES_MAX} bytes for each byte of JSON`, of: figure('diskBytesPerJsonByte'), atMost: BYTES_MAX },
        ],
        round: async () => await fill(bench, models),
      },
    ])
  },
}

async function fill(bench: Bench, models: readonly Dataset[]): Promise<Round> {
  const { dataFolder = '' } = bench.server
  const before = diskBytes(dataFolder)
  const jsonBytes = models.reduce((sum, { first }) => sum + first.jsonBytes, 0)
  const upload = async (): Promise<Report> => {
    const reports: Report[] = []
    for (const { name, first } of models) {
      const projectId = bench.freshProject(name)
      reports.push(await bench.upload(projectId, first))
      await bench.run({ connections: 1, exchanges: [bench.graph(projectId, first.rootId)] })
    }
    const sum = (of: (report: Report) => number): number => reports.reduce((total, report) => total + of(report), 0)
    return {
      seconds: sum(({ seconds }) => seconds),
      bytes: sum(({ bytes }) => bytes),
      timings: reports.flatMap(({ timings }) => timings),
      failures: [],
    }
  }
  const figures = await observe(bench, upload, { jsonBytes, objects: models.length * MODEL_OBJECTS })
  // What a clean stop writes counts, too.
  await bench.server.restart?.()
  return { figures: { ...figures, diskBytesPerJsonByte: (diskBytes(dataFolder) - before) / jsonBytes } }
}

/** Blocks that a folder takes on disk. */
function diskBytes(folder: string): number {
  return Number(execFileSync('du', ['-s', '-B1', folder], { encoding: 'utf8' }).split('\t')[0])
}
