import { type FigureName, type Row, spread, type Target } from './results.ts'

/** How the cost for each object may grow from the small model to the large one, by family. */
const GROWTH_MAX: Readonly<Record<string, number>> = {
  upload: 1.3,
  recursive: 1.3,
  'random-ids': 2,
  single: 2,
  diff: 2,
}
const COST: FigureName = 'serverCpuMicrosecondsPerObject'
const MEMORY: FigureName = 'serverPeakResidentMb'
const MEMORY_MB_MAX = 300
const SMALL = '10k'
const LARGE = '1m'

/** Rows that compare rows of a large model with those of a small one. */
export function growthRows(rows: readonly Row[]): readonly Row[] {
  return rows.flatMap((large) => {
    const small = rows.find(({ id }) => id === large.id.replace(`-${LARGE}`, `-${SMALL}`))
    const limit = GROWTH_MAX[large.family]
    const [largeCost, smallCost] = [large.figures[COST]?.median, small?.figures[COST]?.median]
    if (!large.dataset.endsWith(`-${LARGE}`) || limit === undefined) return []
    if (small === undefined || largeCost === undefined || smallCost === undefined || smallCost === 0) return []
    const growth = largeCost / smallCost
    const target: Target = {
      aim: `cost for each object within ${limit} times`,
      figure: growth,
      isAbsolute: false,
      verdict: growth <= limit ? 'met' : 'not met',
    }
    return [
      {
        id: `growth/${large.id}`,
        family: 'growth',
        title: `${large.title}: 1,000,000 objects against 10,000`,
        dataset: large.dataset,
        headline: 'growth',
        figures: { growth: spread([growth]) },
        references: [],
        targets: [target],
        noise: large.noise,
      },
    ]
  })
}

/** The row that held most memory, with the bound for all of them. */
export function memoryRows(rows: readonly Row[]): readonly Row[] {
  const peak = (row: Row): number => row.figures[MEMORY]?.max ?? 0
  const most = rows.toSorted((a, b) => peak(b) - peak(a)).at(0)
  if (most === undefined || peak(most) === 0) return []
  const target: Target = {
    aim: `under ${MEMORY_MB_MAX} MB in every row`,
    figure: peak(most),
    isAbsolute: false,
    verdict: peak(most) < MEMORY_MB_MAX ? 'met' : 'not met',
  }
  return [
    {
      ...most,
      id: 'memory',
      family: 'memory',
      title: `most memory of all rows: ${most.title}`,
      headline: MEMORY,
      figures: { [MEMORY]: spread([peak(most)]) },
      references: [],
      targets: [target],
    },
  ]
}
