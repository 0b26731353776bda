/** What keeps a slow answer alive: a line that is sent when nothing else was for a while. */
export interface Heartbeat {
  readonly intervalMs: number
  /** A whole line, its LF included, of 65,535 bytes at most. Clients that asked for heartbeats skip it. */
  readonly line: Uint8Array
}

/** Knows how long ago bytes were last sent. */
export class Pacer {
  readonly #intervalMs: number
  #sentAtMs: number = performance.now()

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Milliseconds until a heartbeat is due; 0 when it is. */
  get dueInMs(): number {
    return Math.max(0, this.#sentAtMs + this.#intervalMs - performance.now())
  }

  sent(): void {
    this.#sentAtMs = performance.now()
  }
}

/**
 * The source's values, and `beat` between them whenever it is due and the next value is not there. An early return aborts `stop`, so that a
 * source that is at work ends, and closes it.
 */
export async function* withBeats<T>(
  source: AsyncIterable<T>,
  beat: T,
  pacer: Pacer,
  stop: AbortController,
): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = iterator.next()
      while (!(await settlesWithin(next, pacer.dueInMs))) if (pacer.dueInMs === 0) yield beat
      const result = await next
      if (result.done === true) return
      yield result.value
    }
  } finally {
    stop.abort()
    await iterator.return?.()
  }
}

function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, false)
    const settled = (): void => {
      clearTimeout(timer)
      resolve(true)
    }
    promise.then(settled, settled)
  })
}
