import { performance } from 'node:perf_hooks'
import type { Report } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import { type Family, needsOwnServer } from '../family.ts'
import { observe } from '../observe.ts'
import { firstDownload } from './cold.ts'

/** Merges the packs that uploads left, as `serve` does by itself, and downloads from the merged ones. */
export const compaction: Family = {
  name: 'compaction',
  description: 'merging the packs of a model with a whole processor, and a first download afterwards',
  missing: needsOwnServer,
  plans: async (bench, dataset) => {
    const projectId = await bench.held(dataset)
    const { jsonBytes, objects } = dataset.first
    return [
      {
        title: 'merging the packs of a model',
        headline: 'serverCpuSecondsPerGb',
        // Afterwards nothing is left to merge.
        repetitions: 1,
        attempts: 1,
        round: async () => ({
          figures: await observe(bench, async () => await compact(bench, projectId), { jsonBytes, objects }),
        }),
      },
      {
        variant: 'unplanned',
        title: 'recursive from merged packs, plan never computed',
        ...firstDownload(bench, dataset, projectId),
      },
    ]
  },
}

/** The answer tells in its last line whether all went well. */
async function compact({ server, authorization }: Bench, projectId: string): Promise<Report> {
  const startedAt = performance.now()
  const url = `${server.origin}${server.prefix}/api/v1/projects/${projectId}/compact`
  const answer = await fetch(url, { method: 'POST', headers: authorization })
  const text = await answer.text()
  if (!/\{"report":.*\}\n?$/.test(text)) throw new Error(`the packs were not merged: ${answer.status} ${text}`)
  const totalMs = performance.now() - startedAt
  const timing = { kind: 'compact', status: answer.status, bytes: text.length, firstByteMs: totalMs, totalMs }
  return { seconds: totalMs / 1_000, bytes: text.length, timings: [timing], failures: [] }
}
