import { sleep } from '../../../async/sleep.ts'
import { ClientError } from '../../../client/common/errors.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../../environment.ts'
import { isStowageError } from '../../../errors.ts'

/** How often and how fast a call is retried. */
export interface RunRetryOptions {
  /**
   * The longest wait before the second try; it doubles with each further one. The wait itself is random between half of
   * that and all of it. 250 by default.
   */
  readonly delayMs?: number
  /** The longest wait of all. 20,000 by default. */
  readonly delayMsMax?: number
  /** Tries, including the first one. 8 by default; reports are tried until the run gives up. */
  readonly attemptsMax?: number
}

const DELAY_MS = 250
const DELAY_MS_MAX = 20_000
const ATTEMPTS_MAX = 8

/** Tries until it succeeds or fails for good, or until `signal` aborts: then it throws the last failure. */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  signal: AbortSignal,
  options: RunRetryOptions = {},
  environment: Pick<Environment, 'setTimer' | 'randomBytes'> = REAL_ENVIRONMENT,
): Promise<T> {
  const { delayMs = DELAY_MS, delayMsMax = DELAY_MS_MAX, attemptsMax = ATTEMPTS_MAX } = options
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!isRetryable(error) || signal.aborted || failures >= attemptsMax) throw error
      const waitMs =
        Math.min(delayMsMax, delayMs * 2 ** Math.min(failures - 1, 30)) * (0.5 + environment.randomBytes(1)[0] / 512)
      await sleep(Math.max(waitMs, Math.min(askedWaitMs(error), delayMsMax)), environment, { signal })
      if (signal.aborted) throw error
    }
  }
}

export function isRetryable(error: unknown): boolean {
  return isStowageError(error) && error.isRetryable
}

/** Whether the server says that it accepts nothing more of this run: the run has ended, or its token has expired. */
export function isRefusal(error: unknown): boolean {
  if (!isStowageError(error)) return false
  return (
    error.code === 'conflict' ||
    error.code === 'unauthenticated' ||
    error.code === 'forbidden' ||
    error.code === 'not_found' ||
    error.code === 'project_removed'
  )
}

function askedWaitMs(error: unknown): number {
  return error instanceof ClientError ? (error.retryAfterMs ?? 0) : 0
}
