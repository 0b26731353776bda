import type { Exchange } from '../../load/job.ts'
import type { Bench } from '../bench.ts'
import type { Dataset } from '../dataset.ts'
import { type Family, needsRestart } from '../family.ts'
import { observe } from '../observe.ts'
import { figure, type Round } from '../row.ts'
import { untilPlanned } from './graphs.ts'

const CHANGED = 0.05
const SECONDS_FIRST_MAX = 0.4
const SECONDS_AGAIN_MAX = 0.1

export const have: Family = {
  name: 'have',
  description: 'a later version without the objects of an older one (?have)',
  missing: needsRestart,
  plans: async (bench, dataset) => {
    const version = await bench.heldLater(dataset, CHANGED)
    const projectId = await bench.held(dataset)
    const exchange = await sinceFirst(bench, dataset, bench.graph(projectId, version.rootId))
    const run = async (): ReturnType<Bench['run']> => await bench.run({ connections: 1, exchanges: [exchange] })
    return [
      {
        title: 'have: 5 in 100 changed',
        headline: 'wallSeconds',
        warm: run,
        round: async () => ({
          figures: await observe(bench, run, { jsonBytes: version.uploadJsonBytes, objects: version.uploadObjects }),
        }),
      },
    ]
  },
}

export const deltas: Family = {
  name: 'delta',
  description: 'a later version as deltas against an older one (?have&delta), after a restart and again',
  missing: needsRestart,
  plans: async (bench, dataset) => {
    const { rootId } = await bench.heldLater(dataset, CHANGED)
    const whole = bench.graph(await bench.held(dataset), rootId)
    // The server makes the plan itself some time after an upload, if it is not ended before.
    await untilPlanned(bench, whole)
    const exchange = await sinceFirst(bench, dataset, whole, '&delta')
    return [
      {
        title: 'delta: 1 object in 20 changed',
        headline: 'serverCpuSeconds',
        aims: [
          {
            aim: `${SECONDS_FIRST_MAX} CPU s the first time`,
            of: figure('serverCpuSeconds'),
            atMost: SECONDS_FIRST_MAX,
            isAbsolute: true,
          },
          {
            aim: `${SECONDS_AGAIN_MAX} CPU s again`,
            of: figure('repeatedCpuSeconds'),
            atMost: SECONDS_AGAIN_MAX,
            isAbsolute: true,
          },
        ],
        round: async () => await deltaTwice(bench, dataset, exchange),
      },
    ]
  },
}

/**
 * The request of a client that has the first version and kept the digest of it. Throws if the server does not leave that
 * version out: then the row would measure a whole download.
 */
async function sinceFirst(bench: Bench, dataset: Dataset, whole: Exchange, more: string = ''): Promise<Exchange> {
  const ask = async ({ path, headers }: Exchange): Promise<Headers> =>
    (await fetch(`${bench.server.origin}${path}`, { method: 'HEAD', ...(headers && { headers }) })).headers
  const first = bench.graph(await bench.held(dataset), dataset.first.rootId)
  const digest = (await ask(first)).get('stowage-closure')
  const exchange = { ...whole, path: `${whole.path}?have=${dataset.first.rootId}@${digest}${more}` }
  const outcome = (await ask(exchange)).get('stowage-have')
  if (outcome !== `${dataset.first.rootId};subtracted`)
    throw new Error(`the first version was not left out: Stowage-Have is ${outcome}`)
  return exchange
}

/** Other requests warm the restarted server, so that only the delta itself is new to it. */
async function deltaTwice(bench: Bench, dataset: Dataset, exchange: Exchange): Promise<Round> {
  const version = await dataset.later(CHANGED)
  const projectId = await bench.held(dataset)
  await bench.server.restart?.()
  const graph = bench.graph(projectId, dataset.first.rootId)
  const singles = dataset
    .ids()
    .slice(0, 500)
    .map((id) => bench.single(projectId, id))
  await bench.run({ connections: 1, exchanges: [graph, ...singles] })
  const run = async (): ReturnType<Bench['run']> => await bench.run({ connections: 1, exchanges: [exchange] })
  const carried = { jsonBytes: version.uploadJsonBytes, objects: version.uploadObjects }
  const figures = await observe(bench, run, carried)
  const { serverCpuSeconds: repeatedCpuSeconds } = await observe(bench, run, carried)
  return { figures: { ...figures, ...(repeatedCpuSeconds === undefined ? {} : { repeatedCpuSeconds }) } }
}
