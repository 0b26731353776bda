import { randomBytes } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify, SignJWT } from 'jose'
import { globalKey } from '../records/keys.ts'
import { decodeRecord } from '../records/codec.ts'
import type { AutomationStore } from '../records/store.ts'

/** The claims in a run's token. */
export interface RunClaims {
  readonly projectId: string
  readonly runId: string
  readonly attempt: number
}

const ALGORITHM = 'HS256'
const ISSUER = 'stowage'
const AUDIENCE = 'stowage-run'
/** The type of a run's token (RFC 7515 section 4.1.9), which distinguishes it from those of the host. */
const TYPE = 'stowage-run+jwt'
const SECRET_BYTES = 32

/** Tokens of runs: JWTs (RFC 7519) of a key that is made on first use and kept with the data. */
export class RunTokens {
  readonly #store: AutomationStore
  #secret: Promise<Uint8Array> | undefined

  constructor(store: AutomationStore) {
    this.#store = store
  }

  async issue({ projectId, runId, attempt }: RunClaims, expiresAtMs: number): Promise<string> {
    return new SignJWT({ run: { projectId, runId, attempt } })
      .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(`run:${runId}`)
      .setExpirationTime(Math.ceil(expiresAtMs / 1_000))
      .sign(await this.#key())
  }

  /** Whether it claims to be the token of a run. */
  isOne(token: string): boolean {
    try {
      return decodeProtectedHeader(token).typ === TYPE
    } catch {
      return false
    }
  }

  /** `undefined` for an invalid token. Throws only the errors of the storage. */
  async verify(token: string): Promise<RunClaims | undefined> {
    const key = await this.#key()
    try {
      const options = {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: ISSUER,
        audience: AUDIENCE,
        requiredClaims: ['exp'],
        currentDate: new Date(this.#store.clock.now()),
      }
      return (await jwtVerify<{ run: RunClaims }>(token, key, options)).payload.run
    } catch {
      return undefined
    }
  }

  #key(): Promise<Uint8Array> {
    this.#secret ??= this.#readKey().catch((error: unknown) => {
      this.#secret = undefined
      throw error
    })
    return this.#secret
  }

  async #readKey(): Promise<Uint8Array> {
    const key = globalKey('key', 'run-tokens')
    const made = this.#store.entry(key, { secret: randomBytes(SECRET_BYTES).toString('hex') })
    const [held] = await this.#store.records.insertMany([made])
    return new Uint8Array(Buffer.from(decodeRecord<{ readonly secret: string }>(key, held ?? made.value).secret, 'hex'))
  }
}
