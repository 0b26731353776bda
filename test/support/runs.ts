const { STOWAGE_PROPERTY_RUNS_FACTOR = '1' } = process.env
const FACTOR = Number(STOWAGE_PROPERTY_RUNS_FACTOR)
if (!(FACTOR > 0))
  throw new RangeError(`STOWAGE_PROPERTY_RUNS_FACTOR "${STOWAGE_PROPERTY_RUNS_FACTOR}" is not a positive number`)

/**
 * How many cases a property is tried with: `STOWAGE_PROPERTY_RUNS_FACTOR` times the count, which is enough for every
 * day.
 */
export function propertyRuns(count: number): number {
  return Math.ceil(count * FACTOR)
}
