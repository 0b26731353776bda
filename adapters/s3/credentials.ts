import { REAL_ENVIRONMENT } from '../../src/environment.ts'

/** Keys that sign requests. Providers of the AWS SDK give objects of this shape. */
export interface S3Credentials {
  /** The name of the key. */
  readonly accessKeyId: string
  /** The secret of the key. */
  readonly secretAccessKey: string
  /** The token of temporary credentials. */
  readonly sessionToken?: string | undefined
  /** When temporary credentials end. They are asked for again five minutes earlier. */
  readonly expiration?: Date | undefined
}

/** Gives credentials: at the first request, and again before they expire. */
export type S3CredentialsProvider = () => Promise<S3Credentials>

const REFRESH_BEFORE_MS = 5 * 60_000

/** The credentials at hand. Concurrent callers share one call of the provider. */
export class CredentialSource {
  readonly #provide: S3CredentialsProvider
  #known: S3Credentials | undefined
  #asking: Promise<S3Credentials> | undefined

  constructor(credentials: S3Credentials | S3CredentialsProvider | undefined) {
    if (typeof credentials === 'function') this.#provide = credentials
    else if (credentials === undefined) this.#provide = async () => environmentCredentials()
    else {
      checkCredentials(credentials)
      this.#provide = async () => credentials
    }
  }

  /** Throws the error of the provider. */
  get(): Promise<S3Credentials> {
    if (this.#known !== undefined && !isEnding(this.#known)) return Promise.resolve(this.#known)
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined))
    return this.#asking
  }

  /** The store said that these have expired. */
  drop(expired: S3Credentials): void {
    if (this.#known === expired) this.#known = undefined
  }

  async #ask(): Promise<S3Credentials> {
    const known = this.#known
    try {
      const given = await this.#provide()
      checkCredentials(given)
      this.#known = given
      return given
    } catch (error) {
      // Those at hand still hold for a few minutes, in which the provider may recover.
      if (known !== undefined && (known.expiration?.getTime() ?? 0) > REAL_ENVIRONMENT.now()) return known
      throw error
    }
  }
}

function isEnding({ expiration }: S3Credentials): boolean {
  return expiration !== undefined && expiration.getTime() - REFRESH_BEFORE_MS < REAL_ENVIRONMENT.now()
}

function environmentCredentials(): S3Credentials {
  const { AWS_ACCESS_KEY_ID = '', AWS_SECRET_ACCESS_KEY = '', AWS_SESSION_TOKEN } = process.env
  if (AWS_ACCESS_KEY_ID === '' || AWS_SECRET_ACCESS_KEY === '') {
    throw new TypeError(
      'there are no credentials for the S3 store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment',
    )
  }
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN === '' ? undefined : AWS_SESSION_TOKEN,
  }
}

function checkCredentials({ accessKeyId, secretAccessKey }: S3Credentials): void {
  if (typeof accessKeyId === 'string' && typeof secretAccessKey === 'string' && accessKeyId !== '') return
  throw new TypeError('the credentials of s3Blobs must have the texts accessKeyId and secretAccessKey')
}
