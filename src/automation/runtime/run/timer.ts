/** A timer of Node that is set to more fires at once. 24 days. */
export const TIMER_MS_MAX: number = 2 ** 31 - 1

/** A valid timer delay; `Infinity` and other values that are too long become the longest one. */
export function timerMs(ms: number): number {
  return Math.min(ms, TIMER_MS_MAX)
}
