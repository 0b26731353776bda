import { orAborted } from '../../async/abort.ts'
import { timerAfter } from '../common/concurrency.ts'
import { ClientError } from '../common/errors.ts'

/** Limits of the retries of a failed request. All times are in milliseconds. */
export interface RetryOptions {
  /**
   * How long one request is retried after its first failure without progress. 300,000 by default, to wait for a server
   * that restarts or moves. A failure of the server itself (status 500, damaged responses) is tried at most 6 times,
   * since waiting seldom helps.
   */
  readonly retryForMs?: number
  /**
   * How often one request is tried without progress, including the first try. Bounded only by `retryForMs` by default.
   */
  readonly attemptsMax?: number
  /**
   * The longest wait before the second try; it doubles with each further one. The wait itself is random between 0 and
   * that. 400 by default.
   */
  readonly delayMs?: number
  /** The longest wait of all. 20,000 by default. */
  readonly delayMsMax?: number
  /** The longest `Retry-After` that is waited for; a longer one ends the call. 120,000 by default. */
  readonly retryAfterMsMax?: number
  /**
   * Told of every failure that is followed by another try. `leftMs` is how long the request is tried for from then on.
   */
  readonly onRetry?: (error: ClientError, waitMs: number, leftMs: number) => void
}

type Settled = Required<Omit<RetryOptions, 'onRetry'>> & Pick<RetryOptions, 'onRetry'>

const DEFAULTS: Settled = {
  retryForMs: 300_000,
  attemptsMax: Infinity,
  delayMs: 400,
  delayMsMax: 20_000,
  retryAfterMsMax: 120_000,
}
/** Of failures that are there with an answer, not for want of one. */
const FAULTS_MAX = 6
/**
 * With these statuses a server, or a proxy in front of it, says that it cannot be reached or is busy (RFC 9110, section
 * 15).
 */
const AWAY_STATUSES: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

/** Exponential backoff with full jitter; a server's `Retry-After` is the least that is waited. */
export class RetryPolicy {
  readonly #options: Settled

  /** `false` tries once. Throws `RangeError`. */
  constructor(options: RetryOptions | false = {}) {
    this.#options = settled(options === false ? { attemptsMax: 1 } : options)
    const { attemptsMax, retryForMs, delayMs, delayMsMax, retryAfterMsMax } = this.#options
    if (attemptsMax !== Infinity && (!Number.isSafeInteger(attemptsMax) || attemptsMax < 1))
      throw new RangeError(`retry.attemptsMax is ${attemptsMax}; it must be an integer of 1 or more`)
    for (const [name, value] of Object.entries({ retryForMs, delayMs, delayMsMax, retryAfterMsMax })) {
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
  /** Those of them that had a response. */
  #faults = 0
  #firstFailureMs = 0

  constructor(options: Settled, signal: AbortSignal | undefined) {
    this.#options = options
    this.#signal = signal
  }

  /** Something was gained: failures count from the start again. */
  progressed(): void {
    this.#failures = 0
    this.#faults = 0
  }

  /** Resolves when it is time for another try. Throws the error when there is none, and the signal's reason. */
  async failed(error: unknown): Promise<void> {
    this.#signal?.throwIfAborted()
    const { attemptsMax, retryForMs, delayMs, delayMsMax, retryAfterMsMax, onRetry } = this.#options
    const nowMs = performance.now()
    if (this.#failures === 0) this.#firstFailureMs = nowMs
    this.#failures += 1
    if (!(error instanceof ClientError) || !error.isRetryable || this.#failures >= attemptsMax) throw error
    if (!isAway(error) && ++this.#faults >= FAULTS_MAX) throw error
    const { retryAfterMs = 0 } = error
    const leftMs = retryForMs - (nowMs - this.#firstFailureMs)
    if (leftMs <= 0 || retryAfterMs > Math.min(leftMs, retryAfterMsMax)) throw error
    const backoffMs = Math.random() * Math.min(delayMsMax, delayMs * 2 ** (this.#failures - 1))
    // The last try is at the end of the time, not before it.
    const waitMs = Math.min(leftMs, retryAfterMs + backoffMs)
    onRetry?.(error, waitMs, leftMs)
    await wait(waitMs, this.#signal)
  }
}

/** Whether the server is temporarily away. Otherwise it is there, and its responses are wrong. */
function isAway({ isAnswered, statusCode, code }: ClientError): boolean {
  return isAnswered ? AWAY_STATUSES.has(statusCode) : code === 'network_failed' || code === 'timed_out'
}

/** An `undefined` option counts as omitted. */
function settled({
  retryForMs = DEFAULTS.retryForMs,
  attemptsMax = DEFAULTS.attemptsMax,
  delayMs = DEFAULTS.delayMs,
  delayMsMax = DEFAULTS.delayMsMax,
  retryAfterMsMax = DEFAULTS.retryAfterMsMax,
  onRetry,
}: RetryOptions): Settled {
  return { retryForMs, attemptsMax, delayMs, delayMsMax, retryAfterMsMax, onRetry }
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
