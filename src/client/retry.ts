import { orAborted, timerAfter } from './concurrency.ts'
import { ClientError } from './errors.ts'

/** How patiently a failed request is tried again. All times are in milliseconds. */
export interface RetryOptions {
  /** How often one request is tried, the first time included, with nothing gained in between. 6 by default. */
  readonly attemptsMax?: number
  /** The longest wait before the second try; it doubles with each further one. The wait itself is random between 0 and that. 400 by default. */
  readonly delayMs?: number
  /** The longest wait of all. 20,000 by default. */
  readonly delayMsMax?: number
  /** The longest `Retry-After` that is waited for; a longer one ends the call. 120,000 by default. */
  readonly retryAfterMsMax?: number
  /** Told of every failure that is followed by another try. */
  readonly onRetry?: (error: ClientError, waitMs: number) => void
}

type Settled = Required<Omit<RetryOptions, 'onRetry'>> & Pick<RetryOptions, 'onRetry'>

const DEFAULTS: Settled = { attemptsMax: 6, delayMs: 400, delayMsMax: 20_000, retryAfterMsMax: 120_000 }

/** Exponential backoff with full jitter; a server's `Retry-After` is the least that is waited. */
export class RetryPolicy {
  readonly #options: Settled

  /** `false` tries once. Throws `RangeError`. */
  constructor(options: RetryOptions | false = {}) {
    this.#options = settled(options === false ? { attemptsMax: 1 } : options)
    const { attemptsMax, delayMs, delayMsMax, retryAfterMsMax } = this.#options
    if (!Number.isSafeInteger(attemptsMax) || attemptsMax < 1)
      throw new RangeError(`retry.attemptsMax is ${attemptsMax}; it must be an integer of 1 or more`)
    for (const [name, value] of Object.entries({ delayMs, delayMsMax, retryAfterMsMax })) {
      if (!(value >= 0)) throw new RangeError(`retry.${name} is ${value}; it must be 0 or more`)
    }
  }

  begin(signal: AbortSignal | undefined): Attempts {
    return new Attempts(this.#options, signal)
  }

  /** Tries until it succeeds, fails for good, or has been tried often enough. */
  async run<T>(signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    const attempts = this.begin(signal)
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        await attempts.failed(error)
      }
    }
  }
}

/** The tries of one piece of work, which may be a download over many connections. */
export class Attempts {
  readonly #options: Settled
  readonly #signal: AbortSignal | undefined
  #failures = 0

  constructor(options: Settled, signal: AbortSignal | undefined) {
    this.#options = options
    this.#signal = signal
  }

  /** Something was gained: failures count from the start again. */
  progressed(): void {
    this.#failures = 0
  }

  /** Resolves when it is time for another try. Throws the error when there is none, and the signal's reason. */
  async failed(error: unknown): Promise<void> {
    this.#signal?.throwIfAborted()
    const { attemptsMax, delayMs, delayMsMax, retryAfterMsMax, onRetry } = this.#options
    this.#failures += 1
    if (!(error instanceof ClientError) || !error.retryable || this.#failures >= attemptsMax) throw error
    const { retryAfterMs = 0 } = error
    if (retryAfterMs > retryAfterMsMax) throw error
    const waitMs = retryAfterMs + Math.random() * Math.min(delayMsMax, delayMs * 2 ** (this.#failures - 1))
    onRetry?.(error, waitMs)
    await wait(waitMs, this.#signal)
  }
}

/** What is `undefined` counts as not given. */
function settled({
  attemptsMax = DEFAULTS.attemptsMax,
  delayMs = DEFAULTS.delayMs,
  delayMsMax = DEFAULTS.delayMsMax,
  retryAfterMsMax = DEFAULTS.retryAfterMsMax,
  onRetry,
}: RetryOptions): Settled {
  return { attemptsMax, delayMs, delayMsMax, retryAfterMsMax, onRetry }
}

async function wait(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const waited = new Promise<void>((resolve) => (timer = timerAfter(waitMs, resolve)))
  try {
    await (signal === undefined ? waited : orAborted(waited, signal))
  } finally {
    clearTimeout(timer)
  }
}
