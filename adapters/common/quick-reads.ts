/** The part of one turn of the event loop that quick reads may take. */
const TURN_MS_MAX = 4
/**
 * After two reads in a row that took longer than this, the thread pool reads for a while: what is asked for is not in
 * memory. One alone may only have been interrupted.
 */
const READ_MS_MAX = 2
const PAUSE_MS = 100

/**
 * Small reads on the calling thread. What is in memory takes a few microseconds to copy, and the trip to the thread
 * pool for it takes ten times that. A turn of the event loop gives some milliseconds to them, and a disk that must be
 * waited for is left to the thread pool.
 */
export class QuickReads {
  #spentMs = 0
  #slowInRow = 0
  #notBeforeMs = 0
  readonly #nowMs: () => number

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** The result of `read`; `undefined` if it must go through the thread pool, or failed: there it fails again. */
  tryNow<T>(read: () => T): T | undefined {
    const beganMs = this.#nowMs()
    if (beganMs < this.#notBeforeMs || this.#spentMs > TURN_MS_MAX) return undefined
    try {
      return read()
    } catch {
      return undefined
    } finally {
      this.#count(beganMs)
    }
  }

  #count(beganMs: number): void {
    const nowMs = this.#nowMs()
    const tookMs = nowMs - beganMs
    if (this.#spentMs === 0) setImmediate(() => (this.#spentMs = 0))
    this.#spentMs += Math.max(tookMs, Number.EPSILON)
    this.#slowInRow = tookMs > READ_MS_MAX ? this.#slowInRow + 1 : 0
    if (this.#slowInRow > 1) this.#notBeforeMs = nowMs + PAUSE_MS
  }
}
