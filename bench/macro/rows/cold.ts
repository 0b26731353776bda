import { setTimeout as delay } from 'node:timers/promises'
import type { Report } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import type { Dataset } from '../dataset.ts'
import { type Family, needsRestart } from '../family.ts'
import { uploadAnotherRoot } from '../../upload.ts'
import { observe } from '../observe.ts'
import { type Aim, figure, ratioTo, type RowPlan } from '../row.ts'
import { nginxRate, untilPlanned } from './graphs.ts'

const OBJECTS_OF_AIM = 100_000
const LARGE_OBJECTS = 1_000_000

export const unplanned: Family = {
  name: 'unplanned',
  description: 'the first download of a root that no plan exists for',
  plans: async (bench, dataset) => [
    { title: 'recursive, plan never computed', ...firstDownload(bench, dataset, await bench.held(dataset)) },
  ],
}

/** Downloads of roots for which no plan exists. */
export function firstDownload(bench: Bench, dataset: Dataset, projectId: string): Omit<RowPlan, 'title'> {
  const { lineBytes: jsonBytes, objects } = dataset.first
  return {
    headline: 'firstByteMs',
    aims: firstByteAims(objects),
    round: async () => {
      const { origin, prefix, token } = bench.server
      const rootId = await uploadAnotherRoot({ url: `${origin}${prefix}`, token, projectId }, dataset.first.rootId)
      const run = async (): Promise<Report> =>
        await bench.run({ connections: 1, exchanges: [bench.graph(projectId, rootId)] })
      return { figures: await observe(bench, run, { jsonBytes, objects }) }
    },
  }
}

/**
 * The client was idle while the server started, after which each server answers it more slowly than in the middle of
 * work. So it is idle as long before it asks nginx.
 */
export const restarted: Family = {
  name: 'restart',
  description: 'the first download after a restart of the server, its plan on disk, against nginx',
  missing: needsRestart,
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const exchange = bench.graph(projectId, dataset.first.rootId)
    await untilPlanned(bench, exchange)
    const saved = await bench.files.save(exchange)
    const jsonBytes = dataset.first.lineBytes
    return [
      {
        title: 'recursive, first request after a restart',
        headline: 'jsonMbPerSecond',
        aims: [{ aim: 'at least 0.4 of nginx', of: ratioTo('nginx'), atLeast: 0.4 }],
        round: async () => {
          const startedMs = performance.now()
          await bench.server.restart?.()
          const idleMs = performance.now() - startedMs
          const run = async (): ReturnType<Bench['run']> => await bench.run({ connections: 1, exchanges: [exchange] })
          const figures = await observe(bench, run, { jsonBytes, objects: dataset.first.objects })
          await delay(idleMs)
          return { figures, references: await nginxRate(bench, saved, jsonBytes, 1) }
        },
      },
    ]
  },
}

function firstByteAims(objects: number): readonly Aim[] {
  const limit = objects === OBJECTS_OF_AIM ? 150 : objects === LARGE_OBJECTS ? 600 : undefined
  if (limit === undefined) return []
  return [{ aim: `first byte within ${limit} ms`, of: figure('firstByteMs'), atMost: limit, isAbsolute: true }]
}
