import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../../environment.ts'

const CODE_BYTES = 32
const CODES_MAX = 1_000
const CODE_MS = 300_000

/** What a code stands for. */
export interface SignInCode {
  /** The token of the person who signs in with the code. */
  readonly token: string
  /** When the code ends, in milliseconds since 1970. */
  readonly expiresMs: number
}

/** Where codes wait until they are used. Names are digests: the codes themselves are not kept. */
export interface SignInCodeStore {
  /** Keeps a code, and forgets those that had ended at `nowMs`. */
  put(digest: string, code: SignInCode, nowMs: number): Promise<void>
  /** Removes a code. Of several callers one gets it, the others `undefined`. */
  take(digest: string): Promise<SignInCode | undefined>
}

/** Codes that sign in once, within five minutes. */
export class SignInCodes {
  readonly #clock: Clock
  readonly #store: SignInCodeStore

  /** Codes of the default store work in this process only. */
  constructor(clock: Clock, store: SignInCodeStore = new CodesOfProcess()) {
    this.#clock = clock
    this.#store = store
  }

  async issue(token: string): Promise<string> {
    const code = randomBytes(CODE_BYTES).toString('base64url')
    const nowMs = this.#clock.now()
    await this.#store.put(digestOf(code), { token, expiresMs: nowMs + CODE_MS }, nowMs)
    return code
  }

  /** The token of a code, once; `undefined` for a code that is used up, too old or unknown. */
  async redeem(code: string): Promise<string | undefined> {
    const found = await this.#store.take(digestOf(code))
    return found !== undefined && found.expiresMs > this.#clock.now() ? found.token : undefined
  }
}

/** Of too many the oldest go. */
class CodesOfProcess implements SignInCodeStore {
  readonly #codes = new Map<string, SignInCode>()

  put(digest: string, code: SignInCode, nowMs: number): Promise<void> {
    for (const [other, { expiresMs }] of this.#codes)
      if (expiresMs <= nowMs || this.#codes.size >= CODES_MAX) this.#codes.delete(other)
    this.#codes.set(digest, code)
    return Promise.resolve()
  }

  take(digest: string): Promise<SignInCode | undefined> {
    const found = this.#codes.get(digest)
    this.#codes.delete(digest)
    return Promise.resolve(found)
  }
}

function digestOf(code: string): string {
  return createHash('sha256').update(code).digest('base64url')
}
