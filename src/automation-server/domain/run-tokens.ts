import { createHmac } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import type { Environment } from '../../environment.ts'
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
/** How much later a token ends than its run must: the clock of the server that checks it may run ahead. */
const CLOCK_DIFFERENCE_MS_MAX = 600_000

/** Tokens of runs: JWTs (RFC 7519) of a key that is made on first use and kept with the data. */
export class RunTokens {
  readonly #store: AutomationStore
  readonly #environment: Pick<Environment, 'randomBytes'>
  #secret: Promise<Uint8Array> | undefined
  #lastHeader = { text: '', isOne: false }

  constructor(store: AutomationStore, environment: Pick<Environment, 'randomBytes'>) {
    this.#store = store
    this.#environment = environment
  }

  /**
   * A token whose run has ended is refused anyway, whatever the clocks say. Signed here, since jose signs in the thread
   * pool, and in a simulation a run must not depend on when that answers.
   */
  async issue({ projectId, runId, attempt }: RunClaims, deadlineMs: number): Promise<string> {
    const claims = {
      run: { projectId, runId, attempt },
      iss: ISSUER,
      aud: AUDIENCE,
      sub: `run:${runId}`,
      exp: Math.ceil((deadlineMs + CLOCK_DIFFERENCE_MS_MAX) / 1_000),
    }
    const signed = [{ alg: ALGORITHM, typ: TYPE }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const signature = createHmac('sha256', await this.#key())
      .update(signed)
      .digest('base64url')
    return `${signed}.${signature}`
  }

  /** Whether it claims to be the token of a run. Tokens of one issuer have one header, which is decoded once. */
  isOne(token: string): boolean {
    const header = token.slice(0, token.indexOf('.') + 1)
    if (header !== this.#lastHeader.text) this.#lastHeader = { text: header, isOne: hasType(header) }
    return this.#lastHeader.isOne
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
    const made = this.#store.entry(key, {
      secret: Buffer.from(this.#environment.randomBytes(SECRET_BYTES)).toString('hex'),
    })
    const [held] = await this.#store.records.insertMany([made])
    return new Uint8Array(Buffer.from(decodeRecord<{ readonly secret: string }>(key, held ?? made.value).secret, 'hex'))
  }
}

/** Of the first part of a token, with the dot behind it. */
function hasType(header: string): boolean {
  try {
    return decodeProtectedHeader({ protected: header.slice(0, -1) }).typ === TYPE
  } catch {
    return false
  }
}
