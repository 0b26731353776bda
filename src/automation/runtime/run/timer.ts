/** A timer of Node that is set to more fires at once. 24 days. */
export const TIMER_MS_MAX: number = 2 ** 31 - 1

/** A time that a timer can be set to; `Infinity` and what else is too long is the longest one. */
export function timerMs(ms: number): number {
  return Math.min(ms, TIMER_MS_MAX)
}
