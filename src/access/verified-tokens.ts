import { hash } from 'node:crypto'
import type { Clock } from '../environment.ts'
import { ByteCache } from '../memory/byte-cache.ts'
import type { Principal } from './access.ts'

/** A token whose signature and claims hold. */
export interface VerifiedToken {
  readonly principal: Principal
  /** When its claims were checked. */
  readonly fromMs: number
  /** When it expires. */
  readonly untilMs: number
  /** Whether the key that verified it is still in use. */
  readonly isKeyHeld: () => Promise<boolean>
}

const CACHE_BYTES = 1_048_576
/** A verified token in memory, about: its claims as a principal, and the closure that asks for its key. */
const BASE_BYTES = 1_024
const BYTES_A_CHARACTER = 4

/**
 * Tokens that were verified, until they expire or their key goes: checking a signature takes longer than all other work
 * on a small request. They are known by their SHA-256. A token that was refused is checked again each time.
 */
export class VerifiedTokens {
  readonly #verify: (token: string) => Promise<VerifiedToken>
  readonly #clock: Clock
  readonly #verified = new ByteCache<Sized>(CACHE_BYTES, ({ bytes }) => bytes)

  constructor(verify: (token: string) => Promise<VerifiedToken>, clock: Clock) {
    this.#verify = verify
    this.#clock = clock
  }

  /** The principal of a token that holds now. Throws the reason of `verify` for any other. */
  async principalOf(token: string): Promise<Principal> {
    const key = hash('sha256', token, 'base64')
    const load = async (): Promise<Sized> => ({
      ...(await this.#verify(token)),
      bytes: BASE_BYTES + BYTES_A_CHARACTER * token.length,
    })
    const known = this.#verified.get(key, load)
    const verified = await known
    if (await this.#holds(verified)) return verified.principal
    this.#verified.delete(key, known)
    return (await this.#verified.get(key, load)).principal
  }

  async #holds({ fromMs, untilMs, isKeyHeld }: VerifiedToken): Promise<boolean> {
    const nowMs = this.#clock.now()
    if (nowMs < fromMs || nowMs >= untilMs) return false
    try {
      return await isKeyHeld()
    } catch {
      // The check of the signature meets the same fault, and says what it is.
      return false
    }
  }
}

interface Sized extends VerifiedToken {
  readonly bytes: number
}
