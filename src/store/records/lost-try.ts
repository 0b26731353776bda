import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { Environment } from '../../environment.ts'
import type { Conflict, Expectation, RecordStore } from '../../storage/backend.ts'

/** Where so many tries in a row are lost it is crowded: a pause lets others pass. */
export const TRIES_AT_ONCE = 4

/** The values of keys, in the order of the expectations that name them. */
export type FoundValues = readonly (Uint8Array | undefined)[]

export interface LostTry {
  readonly expect: readonly Expectation[]
  readonly conflicts: readonly Conflict[]
  /** How many tries were lost, this one included. */
  readonly tries: number
}

/**
 * What the next try of a commit shall expect. The lost one found it, so the next one comes at once and without a read,
 * while others are still busy with theirs. Values that are older than a pause would be out of date, so they are read.
 */
export async function afterLostTry(
  { records, environment }: { readonly records: RecordStore; readonly environment: Environment },
  { expect, conflicts, tries }: LostTry,
): Promise<FoundValues> {
  if (tries % TRIES_AT_ONCE === 0) {
    await pauseBeforeRetry(tries, environment)
    return records.getMany(expect.map(({ key }) => key))
  }
  return valuesFound(expect, conflicts)
}

/** The values of all expected keys at a lost commit. */
export function valuesFound(expect: readonly Expectation[], conflicts: readonly Conflict[]): FoundValues {
  const values = expect.map(({ value }) => value)
  for (const { index, value } of conflicts) values[index] = value
  return values
}

/** Whether the values are the expected ones; `expect` may name only the first of them. */
export function areAsExpected(values: FoundValues, expect: readonly Expectation[]): boolean {
  return expect.every(({ value }, i) => isSame(values[i], value))
}

function isSame(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.compare(a, b) === 0
}
