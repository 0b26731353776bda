import { readFileSync } from 'node:fs'

const TICK_MS = 5

/**
 * How late the event loop is, less the time for which its thread was ready to run and had no processor: that is other processes' doing. Where the
 * system does not tell that time, all of it counts.
 */
export class LoopWatch {
  #lateMs: number[] = []
  #timer: NodeJS.Timeout | undefined

  start(): void {
    clearInterval(this.#timer)
    this.#lateMs = []
    let [atMs, waitedMs] = [performance.now(), queuedMs()]
    this.#timer = setInterval(() => {
      const [nowMs, nowWaitedMs] = [performance.now(), queuedMs()]
      this.#lateMs.push(Math.max(0, nowMs - atMs - TICK_MS - (nowWaitedMs - waitedMs)))
      atMs = nowMs
      waitedMs = nowWaitedMs
    }, TICK_MS)
  }

  p99Ms(): number {
    const sorted = [...this.#lateMs].sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length * 0.99)] ?? 0
  }
}

/** How long this thread has waited for a processor so far: the second number, in nanoseconds, of what Linux counts for it. */
function queuedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
