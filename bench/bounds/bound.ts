import { availableParallelism } from 'node:os'
import type { ProfileName } from '../model/profiles.ts'
import { describe, sample } from '../measure.ts'

/** Where a row is measured. */
export interface BoundOptions {
  readonly profile: ProfileName
  /** Of the model. */
  readonly objects: number | undefined
  readonly rounds: number
  /** An empty folder, on a disk. */
  readonly folder: string
}

export type Bound = (options: BoundOptions) => Promise<void>

export const CORES: number = availableParallelism()

/** One line for a figure of all rounds. */
export function printFigure(what: string, unit: string, values: readonly number[]): void {
  console.log(`  ${what}: ${describe(sample(values), unit)}`)
}
