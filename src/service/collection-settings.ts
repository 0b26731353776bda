/** How the collections of a service treat objects, and whether it collects by itself. */
export interface CollectionSettings {
  /** Collections that name no `olderThanMs` keep younger objects, with everything below them. 14 days by default. */
  readonly olderThanMs?: number | undefined
  /** How long objects can be restored that were condemned, in collections that name no `undoMs`. 14 days by default. */
  readonly undoMs?: number | undefined
  /**
   * The pause between two collections of all projects. Never by default. 24 days at most. The first one comes 10 minutes
   * after the opening at the latest.
   */
  readonly everyMs?: number | undefined
}

/** The periods of a collection that names none. */
export interface CollectionPeriods {
  readonly olderThanMs: number
  readonly undoMs: number
}

const GRACE_MS = 14 * 86_400_000

/** Throws `RangeError`. */
export function periodsOf({ olderThanMs = GRACE_MS, undoMs = GRACE_MS }: CollectionSettings = {}): CollectionPeriods {
  for (const [name, ms] of Object.entries({ olderThanMs, undoMs }))
    if (!isPeriod(ms)) throw new RangeError(`collection.${name} is ${ms}; ${PERIOD_RULE}`)
  return { olderThanMs, undoMs }
}

/** What `isPeriod` demands, as the end of a message. */
export const PERIOD_RULE = 'it must be a number of milliseconds of 0 or more'

export function isPeriod(ms: number): boolean {
  return Number.isFinite(ms) && ms >= 0
}
