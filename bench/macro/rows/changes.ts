import type { Bench } from '../bench.ts'
import type { Dataset } from '../dataset.ts'
import { type Family, needsRestart } from '../family.ts'
import { observe } from '../observe.ts'
import { figure, type Round } from '../row.ts'

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
    const exchange = bench.graph(projectId, version.rootId, undefined, `?have=${dataset.first.rootId}`)
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
    await bench.heldLater(dataset, CHANGED)
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
        round: async () => await deltaTwice(bench, dataset),
      },
    ]
  },
}

/** Other requests warm the restarted server, so that only the delta itself is new to it. */
async function deltaTwice(bench: Bench, dataset: Dataset): Promise<Round> {
  const version = await dataset.later(CHANGED)
  const projectId = await bench.held(dataset)
  await bench.server.restart?.()
  const graph = bench.graph(projectId, dataset.first.rootId)
  const singles = dataset
    .ids()
    .slice(0, 500)
    .map((id) => bench.single(projectId, id))
  await bench.run({ connections: 1, exchanges: [graph, ...singles] })
  const query = `?have=${dataset.first.rootId}&delta`
  const exchange = bench.graph(projectId, version.rootId, undefined, query)
  const run = async (): ReturnType<Bench['run']> => await bench.run({ connections: 1, exchanges: [exchange] })
  const carried = { jsonBytes: version.uploadJsonBytes, objects: version.uploadObjects }
  const figures = await observe(bench, run, carried)
  const { serverCpuSeconds: repeatedCpuSeconds } = await observe(bench, run, carried)
  return { figures: { ...figures, ...(repeatedCpuSeconds === undefined ? {} : { repeatedCpuSeconds }) } }
}
