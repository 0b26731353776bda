import { performance } from 'node:perf_hooks'
import type { Bench } from './bench.ts'
import { type MachineUse, machineTime, machineUse, ticksShare } from './machine.ts'
import type { Figures } from './observe.ts'
import {
  FIGURES,
  type FigureName,
  type Noise,
  type Reference,
  type Row,
  type Spread,
  spread,
  type Target,
} from './results.ts'

/** What one round of a row measured. */
export interface Round {
  readonly figures: Figures
  /** The headline figure of each reference, measured in the same round. */
  readonly references?: Readonly<Record<string, number>>
}

/** What a row must reach. */
export interface Aim {
  readonly aim: string
  /** Takes the figure that is compared from the measured row; `undefined` if this run cannot tell. */
  readonly of: (row: Pick<Row, 'figures' | 'references'>) => number | undefined
  readonly atLeast?: number
  readonly atMost?: number
  /** Depends on the speed of the machine, unlike a ratio to a reference. */
  readonly isAbsolute?: boolean
}

export interface RowPlan {
  /** The id without the family and the dataset. */
  readonly variant?: string
  readonly title: string
  readonly headline: FigureName
  /** Rounds, if others than usual. */
  readonly repetitions?: number
  /** Attempts while others use the machine, if fewer than usual. */
  readonly attempts?: number
  readonly aims?: readonly Aim[]
  /** Done once before each attempt, unmeasured. */
  readonly warm?: () => Promise<unknown>
  readonly round: (index: number) => Promise<Round>
}

/** More than this is noise that a row should be repeated for. */
export const NOISE_SHARE_MAX = 0.05
export const STEAL_SHARE_MAX = 0.01
/** A row that has taken as long as this is not repeated: a run must come to its end on a busy machine too. */
const ATTEMPTS_MS_MAX = 60_000

/** The ratio to a reference, whichever the row has of these names. */
export function ratioTo(name: string): Aim['of'] {
  return ({ references }) => references.find((reference) => reference.name === name)?.ratio.median
}

export function figure(name: FigureName): Aim['of'] {
  return ({ figures }) => figures[name]?.median
}

/** Measures a row; again, if others used the machine meanwhile. */
export async function measureRow(bench: Bench, family: string, dataset: string, plan: RowPlan): Promise<Row> {
  let best: { readonly rounds: readonly Round[]; readonly use: MachineUse } | undefined
  const attemptsMax = Math.min(bench.attemptsMax, plan.attempts ?? Infinity)
  const startedMs = performance.now()
  let attempts = 0
  while (attempts < attemptsMax && performance.now() - startedMs < ATTEMPTS_MS_MAX) {
    attempts += 1
    const attempt = await measureOnce(plan, plan.repetitions ?? bench.repetitions)
    if (best === undefined || disturbance(attempt.use) < disturbance(best.use)) best = attempt
    if (isQuiet(best.use)) break
  }
  if (best === undefined) throw new RangeError('a row is measured at least once')
  const id = [family, dataset, plan.variant].filter((part) => part !== undefined).join('/')
  return rowOf({ id, family, dataset, plan }, best.rounds, { ...best.use, attempts })
}

export function isQuiet({ stealShare, othersShare }: MachineUse): boolean {
  return stealShare < STEAL_SHARE_MAX && othersShare < NOISE_SHARE_MAX
}

function disturbance({ stealShare, othersShare }: MachineUse): number {
  return stealShare + othersShare
}

async function measureOnce(
  plan: RowPlan,
  repetitions: number,
): Promise<{ readonly rounds: readonly Round[]; readonly use: MachineUse }> {
  await plan.warm?.()
  const started = performance.now()
  const before = machineTime()
  const rounds: Round[] = []
  for (let index = 0; index < repetitions; index++) rounds.push(await plan.round(index))
  const use = machineUse(before, machineTime())
  const resolution = ticksShare((performance.now() - started) / 1_000)
  return { rounds, use: { ...use, stealShare: use.stealShare < resolution ? 0 : use.stealShare } }
}

function rowOf(
  { id, family, dataset, plan }: { id: string; family: string; dataset: string; plan: RowPlan },
  rounds: readonly Round[],
  noise: Noise,
): Row {
  const names = [...new Set(rounds.flatMap((round) => Object.keys(round.figures)))] as FigureName[]
  const figures: Partial<Record<FigureName, Spread>> = {}
  for (const name of names) figures[name] = spread(rounds.flatMap((round) => round.figures[name] ?? []))
  const row = { figures, references: referencesOf(plan.headline, rounds) }
  const targets = (plan.aims ?? []).flatMap((aim) => targetOf(aim, row))
  return { id, family, title: plan.title, dataset, headline: plan.headline, ...row, targets, noise }
}

/** A ratio above 1 says that the server is better than the reference, whatever the unit. */
function referencesOf(headline: FigureName, rounds: readonly Round[]): readonly Reference[] {
  const names = [...new Set(rounds.flatMap(({ references }) => Object.keys(references ?? {})))]
  return names.map((name) => {
    const pairs = rounds.flatMap(({ figures, references }) => {
      const [own, other] = [figures[headline], references?.[name]]
      return own === undefined || other === undefined ? [] : [{ own, other }]
    })
    const isHigherBetter = FIGURES[headline].better === 'higher'
    return {
      name,
      figure: spread(pairs.map(({ other }) => other)),
      ratio: spread(pairs.map(({ own, other }) => (isHigherBetter ? own / other : other / own))),
    }
  })
}

function targetOf(
  { aim, of, atLeast = -Infinity, atMost = Infinity, isAbsolute = false }: Aim,
  row: Pick<Row, 'figures' | 'references'>,
): readonly Target[] {
  const figure = of(row)
  if (figure === undefined || Number.isNaN(figure)) return []
  const isMet = figure >= atLeast && figure <= atMost
  return [{ aim, figure, isAbsolute, verdict: isMet ? 'met' : 'not met' }]
}
