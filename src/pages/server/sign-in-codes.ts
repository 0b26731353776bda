import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../environment.ts'

const CODE_BYTES = 32
const CODES_MAX = 1_000
const CODE_MS = 300_000

/**
 * Codes that sign in once, within five minutes. They are kept in this process, as digests; of too many the oldest go.
 */
export class SignInCodes {
  readonly #clock: Clock
  readonly #tokens = new Map<string, { readonly token: string; readonly expiresMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  issue(token: string): string {
    const nowMs = this.#clock.now()
    for (const [digest, { expiresMs }] of this.#tokens)
      if (expiresMs <= nowMs || this.#tokens.size >= CODES_MAX) this.#tokens.delete(digest)
    const code = randomBytes(CODE_BYTES).toString('base64url')
    this.#tokens.set(digestOf(code), { token, expiresMs: nowMs + CODE_MS })
    return code
  }

  /** The token of a code, once; `undefined` for a code that is used up, too old or unknown. */
  redeem(code: string): string | undefined {
    const digest = digestOf(code)
    const found = this.#tokens.get(digest)
    this.#tokens.delete(digest)
    return found !== undefined && found.expiresMs > this.#clock.now() ? found.token : undefined
  }
}

function digestOf(code: string): string {
  return createHash('sha256').update(code).digest('base64')
}
