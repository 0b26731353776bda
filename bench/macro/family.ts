import type { Bench } from './bench.ts'
import type { Dataset } from './dataset.ts'
import type { RowPlan } from './row.ts'

/** Rows that belong together: what `--rows` chooses by its name. */
export interface Family {
  readonly name: string
  /** What it measures, in one sentence. */
  readonly description: string
  /** Why this server cannot be measured, if it cannot. */
  readonly missing?: (bench: Bench) => string | undefined
  readonly plans: (bench: Bench, dataset: Dataset, extent: Extent) => Promise<readonly RowPlan[]>
}

/** How much is measured: that everything works, the most important variants, or all. */
export type Extent = 'smoke' | 'short' | 'full'

export function needsOwnServer({ server }: Bench): string | undefined {
  return server.pid === undefined ? 'only for a server that the benchmark starts itself' : undefined
}

export function needsRestart({ server }: Bench): string | undefined {
  return server.restart === undefined ? 'only for a server that the benchmark starts itself' : undefined
}
