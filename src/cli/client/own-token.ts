import { ALL_PROJECTS } from '../../access/access.ts'
import { issueToken, revokeToken } from '../../access/token-store.ts'
import type { CredentialStore } from '../../credentials/credential-store.ts'
import type { Clock } from '../../environment.ts'

/** If the command is killed, nothing revokes its last token. */
const TOKEN_SECONDS = 600

/**
 * Anybody who may read the keys may make a token. This one reads every project, and is renewed as long as the work
 * takes. All that were made are revoked when it ends, also if it fails.
 */
export async function withReadingToken(
  credentials: CredentialStore,
  subject: string,
  use: (token: () => Promise<string>) => Promise<void>,
  clock: Clock = Date,
): Promise<void> {
  const own = new OwnToken(credentials, subject, clock)
  try {
    await use(() => own.current())
  } finally {
    await own.revokeAll()
  }
}

class OwnToken {
  readonly #credentials: CredentialStore
  readonly #subject: string
  readonly #clock: Clock
  readonly #untilMs = new Map<string, number>()
  #token: Promise<string> | undefined
  #renewAtMs = 0

  constructor(credentials: CredentialStore, subject: string, clock: Clock) {
    this.#credentials = credentials
    this.#subject = subject
    this.#clock = clock
  }

  current(): Promise<string> {
    if (this.#token !== undefined && this.#clock.now() < this.#renewAtMs) return this.#token
    this.#renewAtMs = this.#clock.now() + (TOKEN_SECONDS * 1_000) / 2
    this.#token = this.#issue()
    this.#token.catch(() => (this.#token = undefined))
    return this.#token
  }

  async revokeAll(): Promise<void> {
    for (const [jti, untilMs] of this.#untilMs)
      if (untilMs > this.#clock.now()) await revokeToken(this.#credentials, jti)
  }

  async #issue(): Promise<string> {
    const request = {
      projects: new Map([[ALL_PROJECTS, 'read' as const]]),
      subject: this.#subject,
      ttlSeconds: TOKEN_SECONDS,
      readsSealedSecrets: true,
      isTemporary: true,
    }
    const { token, record } = await issueToken(this.#credentials, request, this.#clock)
    this.#untilMs.set(record.jti, Date.parse(record.expiresAt))
    return token
  }
}
