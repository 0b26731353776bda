import type { Environment } from '../environment.ts'

const BASE_MS = 2
const MAX_MS = 250

/**
 * Waits before attempt `attempt + 1` of something that others got in the way of: a random part of a time that doubles,
 * so that those who met do not meet again.
 */
export function pauseBeforeRetry(
  attempt: number,
  environment: Pick<Environment, 'randomBytes' | 'setTimer'>,
): Promise<void> {
  const [random] = environment.randomBytes(1)
  const waitMs = (Math.min(MAX_MS, BASE_MS * 2 ** attempt) * (random + 1)) / 256
  return new Promise((resolve) => void environment.setTimer(waitMs, resolve))
}
