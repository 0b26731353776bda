/** Over so long a time a rate is taken: batches come in jumps. */
const WINDOW_MS = 10_000
/** A shorter time is too little to measure a rate. */
const WINDOW_MS_MIN = 1_000

interface Sample {
  readonly atMs: number
  readonly bytes: number
}

/** The recent rate in bytes a second. It falls while nothing moves. */
export class RateMeter {
  readonly #samples: Sample[]

  constructor(nowMs: number) {
    this.#samples = [{ atMs: nowMs, bytes: 0 }]
  }

  /** `bytes` is the sum since the start. */
  add(bytes: number, nowMs: number): void {
    this.#samples.push({ atMs: nowMs, bytes })
    // One sample stays that is as old as the window, or older: the rate is taken from there.
    while (this.#samples.length > 2 && this.#samples[1].atMs <= nowMs - WINDOW_MS) this.#samples.shift()
  }

  /** `undefined` if there is too little data. */
  bytesPerSecond(nowMs: number): number | undefined {
    const [first] = this.#samples
    const last = this.#samples[this.#samples.length - 1]
    const spentMs = nowMs - first.atMs
    return spentMs < WINDOW_MS_MIN ? undefined : ((last.bytes - first.bytes) / spentMs) * 1_000
  }
}
