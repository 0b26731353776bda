import { readFileSync } from 'node:fs'
import { processorMs } from '../support/processor.ts'

const TICK_MS = 5

/**
 * How late the event loop is, as far as that is the process's own doing: less the time for which its thread was ready
 * to run and had no processor, where the system tells that, and never more than the processor time that the process
 * used meanwhile.
 */
export class LoopWatch {
  #lateMs: number[] = []
  #timer: NodeJS.Timeout | undefined

  start(): void {
    clearInterval(this.#timer)
    this.#lateMs = []
    let [atMs, waitedMs, usedMs] = [performance.now(), queuedMs(), processorMs()]
    this.#timer = setInterval(() => {
      const [nowMs, nowWaitedMs, nowUsedMs] = [performance.now(), queuedMs(), processorMs()]
      this.#lateMs.push(Math.max(0, Math.min(nowMs - atMs - TICK_MS - (nowWaitedMs - waitedMs), nowUsedMs - usedMs)))
      atMs = nowMs
      waitedMs = nowWaitedMs
      usedMs = nowUsedMs
    }, TICK_MS)
  }

  p99Ms(): number {
    const sorted = [...this.#lateMs].sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length * 0.99)] ?? 0
  }
}

/**
 * How long this thread has waited for a processor so far: the second number, in nanoseconds, of what Linux counts for
 * it.
 */
function queuedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
