import { stat } from 'node:fs/promises'
import { BLOCKS_MEDIA_TYPE } from '../../../src/blocks/ready-blocks.ts'
import type { Exchange } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import { blockFiles } from '../block-files.ts'
import type { Dataset } from '../dataset.ts'
import type { Family } from '../family.ts'
import { observe } from '../observe.ts'
import { gunzipRate } from '../references.ts'
import { ratioTo, type Round, type RowPlan } from '../row.ts'

const CLIENTS = 4
const LARGE_OBJECTS = 1_000_000
const RATIO_MIN = 0.25
const BLOCKS_RATIO_MIN = 0.7
/** After so many requests of about 1 MB, the engine has compiled what uploads run. */
const WARMING_REQUESTS = 200

/** As gzip files in forms and as ready blocks, with as much in a request as clients send; each round into a project of its own. */
export const uploads: Family = {
  name: 'upload',
  description: 'durable uploads by four clients, gzipped in batches of 1 MB, and as ready blocks in batches of 2 MB',
  plans: async (bench, dataset) =>
    await Promise.resolve([
      {
        title: `upload, ${CLIENTS} clients, durable`,
        headline: 'jsonMbPerSecond',
        // Only the first upload into a project stores anything.
        ...(bench.server.projects.isFixed
          ? { repetitions: 1 }
          : { ...roundsOf(dataset), warm: async () => await warm(bench, dataset, gzippedOf(bench, dataset)) }),
        aims: [{ aim: `at least ${RATIO_MIN} of gunzip`, of: ratioTo('gunzip'), atLeast: RATIO_MIN }],
        round: async () =>
          await uploadOnce(bench, dataset, {
            exchangesOf: gzippedOf(bench, dataset),
            wireBytes: dataset.first.uploadGzipBytes,
          }),
      },
      ...(bench.server.dataFolder === undefined ? [] : [await readyBlocksPlan(bench, dataset)]),
    ]),
}

type ExchangesOf = (projectId: string) => readonly Exchange[]

function gzippedOf(bench: Bench, { first }: Dataset): ExchangesOf {
  return (projectId) => bench.uploads(projectId, first)
}

/** A part of the model goes into a project of its own. */
async function warm(bench: Bench, { name }: Dataset, exchangesOf: ExchangesOf): Promise<void> {
  const exchanges = exchangesOf(bench.freshProject(name)).slice(0, WARMING_REQUESTS)
  await bench.run({ connections: CLIENTS, exchanges })
}

/** Blocks that were made before the clock starts. */
async function readyBlocksPlan(bench: Bench, dataset: Dataset): Promise<RowPlan> {
  const files = await blockFiles(dataset.first.uploadFiles)
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size))
  const wireBytes = sizes.reduce((sum, size) => sum + size, 0)
  const exchangesOf: ExchangesOf = (projectId) =>
    files.map((bodyFile) => ({
      method: 'POST',
      path: `${bench.server.prefix}/objects/${projectId}`,
      headers: { ...bench.authorization, 'Content-Type': BLOCKS_MEDIA_TYPE },
      bodyFile,
      kind: 'upload',
    }))
  return {
    variant: 'blocks',
    title: `upload as ready blocks, ${CLIENTS} clients, durable`,
    headline: 'jsonMbPerSecond',
    ...roundsOf(dataset),
    aims: [{ aim: `at least ${BLOCKS_RATIO_MIN} of gunzip`, of: ratioTo('gunzip'), atLeast: BLOCKS_RATIO_MIN }],
    warm: async () => await warm(bench, dataset, exchangesOf),
    round: async () => await uploadOnce(bench, dataset, { exchangesOf, wireBytes }),
  }
}

/** Each round leaves a gigabyte on disk. */
function roundsOf({ first }: Dataset): Pick<RowPlan, 'repetitions'> {
  return first.objects >= LARGE_OBJECTS ? { repetitions: 1 } : {}
}

async function uploadOnce(
  bench: Bench,
  dataset: Dataset,
  { exchangesOf, wireBytes }: { readonly exchangesOf: ExchangesOf; readonly wireBytes: number },
): Promise<Round> {
  const { first } = dataset
  const projectId = bench.freshProject(dataset.name)
  const exchanges = exchangesOf(projectId)
  const figures = await observe(bench, async () => await bench.run({ connections: CLIENTS, exchanges }), {
    jsonBytes: first.uploadJsonBytes,
    objects: first.uploadObjects,
  })
  bench.noteHeld(dataset, projectId)
  // The bytes of the answers say nothing here.
  return { figures: { ...figures, wireBytes }, references: { gunzip: await gunzipRate(dataset) } }
}
