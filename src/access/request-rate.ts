import type { Clock } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { Access } from './access.ts'
import { principalKey } from './principal-key.ts'

/** How many requests each principal may make. A principal is a subject, or a token without a subject. */
export interface RequestRate {
  /** Requests a second, over time. May be less than 1. */
  readonly requestsPerSecond: number
  /** Requests at once after a pause. By default the number allowed in ten seconds, at least 1. */
  readonly burst?: number
}

/** A principal that is not remembered has a whole burst, so forgetting the least recent ones favours them. */
const PRINCIPALS_MAX = 10_000
const BURST_SECONDS = 10

interface Bucket {
  tokens: number
  atMs: number
}

/**
 * The same access, with a bound on the rate of each principal: `authenticate` throws `too_many_requests` (429) with whole seconds in
 * `Retry-After`. Throws `RangeError` for a rate that allows nothing.
 */
export function limitedAccess<H>(access: Access<H>, rate: RequestRate, clock: Clock): Access<H> {
  const buckets = new TokenBuckets(rate, clock)
  return {
    ...(access.refusals === undefined ? {} : { refusals: access.refusals }),
    authenticate: async (request) => {
      const principal = await access.authenticate(request)
      if (principal !== undefined) buckets.take(principalKey(principal))
      return principal
    },
    authorize: (principal, projectId, right) => access.authorize(principal, projectId, right),
  }
}

/** A token bucket for each key. */
class TokenBuckets {
  readonly #perMs: number
  readonly #burst: number
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(
    { requestsPerSecond, burst = Math.max(1, requestsPerSecond * BURST_SECONDS) }: RequestRate,
    clock: Clock,
  ) {
    if (!(requestsPerSecond > 0 && Number.isFinite(requestsPerSecond)))
      throw new RangeError(`requestRate.requestsPerSecond is ${requestsPerSecond}; it must be a number above 0`)
    if (!(burst >= 1 && Number.isFinite(burst)))
      throw new RangeError(`requestRate.burst is ${burst}; it must be a number of 1 or more`)
    this.#perMs = requestsPerSecond / 1_000
    this.#burst = burst
    this.#clock = clock
  }

  /** Throws `too_many_requests`. */
  take(key: string): void {
    const nowMs = this.#clock.now()
    const last = this.#buckets.get(key) ?? { tokens: this.#burst, atMs: nowMs }
    // A clock that was set back must not remove existing tokens.
    const tokens = Math.min(this.#burst, last.tokens + Math.max(0, nowMs - last.atMs) * this.#perMs)
    const isRefused = tokens < 1
    this.#buckets.delete(key)
    this.#buckets.set(key, { tokens: isRefused ? tokens : tokens - 1, atMs: nowMs })
    this.#forgetOldest()
    if (isRefused) throw tooManyRequests(Math.max(1, Math.ceil((1 - tokens) / this.#perMs / 1_000)))
  }

  #forgetOldest(): void {
    if (this.#buckets.size <= PRINCIPALS_MAX) return
    const [oldest] = this.#buckets.keys()
    this.#buckets.delete(oldest)
  }
}

function tooManyRequests(seconds: number): StowageError {
  return new StowageError('too_many_requests', `this account exceeds its request rate; try again in ${seconds} s`, {
    headers: { 'Retry-After': String(seconds) },
  })
}
