import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'

/** Keeps a slow response alive: a line that is sent when nothing else was sent for a while. */
export interface Heartbeat {
  readonly intervalMs: number
  /** A whole line, its LF included, of 65,535 bytes at most. Clients that asked for heartbeats skip it. */
  readonly line: Uint8Array
}

/** Knows how long ago bytes were last sent. */
export class Pacer {
  readonly environment: Environment
  readonly #intervalMs: number
  #sentAtMs: number

  constructor(intervalMs: number, environment: Environment = REAL_ENVIRONMENT) {
    this.#intervalMs = intervalMs
    this.environment = environment
    this.#sentAtMs = environment.monotonicMs()
  }

  /** Milliseconds until a heartbeat is due; 0 when it is. */
  get dueInMs(): number {
    return Math.max(0, this.#sentAtMs + this.#intervalMs - this.environment.monotonicMs())
  }

  sent(): void {
    this.#sentAtMs = this.environment.monotonicMs()
  }
}

/**
 * The source's values, and `beat` between them whenever it is due and the next value is not there. An early return
 * aborts `stop`, so that a source that is at work ends, and closes it.
 */
export async function* withHeartbeats<T>(
  source: AsyncIterable<T>,
  beat: T,
  pacer: Pacer,
  stop: AbortController,
): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = iterator.next()
      while (!(await settlesWithin(next, pacer.dueInMs, pacer.environment))) if (pacer.dueInMs === 0) yield beat
      const result = await next
      if (result.done === true) return
      yield result.value
    }
  } finally {
    stop.abort()
    await iterator.return?.()
  }
}

function settlesWithin(promise: Promise<unknown>, waitMs: number, environment: Environment): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = environment.setTimer(waitMs, () => resolve(false))
    const settled = (): void => {
      timer.cancel()
      resolve(true)
    }
    promise.then(settled, settled)
  })
}
