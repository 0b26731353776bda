import type { Bench } from '../bench.ts'
import type { Dataset } from '../dataset.ts'
import type { Family } from '../family.ts'
import { observe } from '../observe.ts'
import { gunzipRate } from '../references.ts'
import { ratioTo, type Round } from '../row.ts'

const CLIENTS = 4
const RATIO_MIN = 0.25

/** Gzipped batches of about 1 MB as multipart files, each round into a project of its own. */
export const uploads: Family = {
  name: 'upload',
  description: 'durable uploads of gzipped batches of 1 MB by four clients',
  plans: async (bench, dataset) =>
    await Promise.resolve([
      {
        title: `upload, ${CLIENTS} clients, durable`,
        headline: 'jsonMbPerSecond',
        // Only the first upload into a project stores anything.
        ...(bench.server.projects.isFixed ? { repetitions: 1 } : {}),
        aims: [{ aim: `at least ${RATIO_MIN} of gunzip`, of: ratioTo('gunzip'), atLeast: RATIO_MIN }],
        round: async () => await uploadOnce(bench, dataset),
      },
    ]),
}

async function uploadOnce(bench: Bench, dataset: Dataset): Promise<Round> {
  const { first } = dataset
  const projectId = bench.freshProject(dataset.name)
  const exchanges = bench.uploads(projectId, first)
  const figures = await observe(bench, async () => await bench.run({ connections: CLIENTS, exchanges }), {
    jsonBytes: first.uploadJsonBytes,
    objects: first.uploadObjects,
  })
  bench.noteHeld(dataset, projectId)
  // The bytes of the answers say nothing here.
  return {
    figures: { ...figures, wireBytes: first.uploadGzipBytes },
    references: { gunzip: await gunzipRate(dataset) },
  }
}
