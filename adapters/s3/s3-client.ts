import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { AwsV4Signer } from 'aws4fetch'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { CredentialSource, S3Credentials } from './credentials.ts'
import { type HttpAnswer, HttpTransport } from './http-transport.ts'
import type { S3Addresses } from './place.ts'
import { S3Error } from './s3-error.ts'

const ATTEMPTS_MAX = 6
const PAUSE_MS = 100
const PAUSE_MS_MAX = 5_000
/** No attempt begins later than this after the first one. */
const RETRY_FOR_MS = 60_000
/** Of one attempt, unless the host says otherwise. */
export const ATTEMPT_TIMEOUT_MS = 30_000
/** How long a call can take, with the default time limit of an attempt. */
export const CALL_MS_MAX: number = RETRY_FOR_MS + PAUSE_MS_MAX + ATTEMPT_TIMEOUT_MS
/** For what cleans up behind a call that failed: the caller waits for it, and a sweep repeats it. */
export const COURTESY: Pick<S3Request, 'attemptsMax' | 'timeoutMs'> = { attemptsMax: 2, timeoutMs: 5_000 }
/** Lists have up to 1,000 entries of some 1,400 bytes. */
const ANSWER_BYTES_MAX = 4 * 1_048_576

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** Absent: the bucket. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Unchanged until the call settles. */
  readonly body?: readonly Uint8Array[]
  readonly answerBytesMax?: number
  /** An answer of exactly this length is read into it. */
  readonly into?: Uint8Array | undefined
  readonly attemptsMax?: number | undefined
  /** Of one attempt. Default: that of the client. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface S3ClientOptions {
  readonly addresses: S3Addresses
  readonly credentials: CredentialSource
  readonly signer: typeof AwsV4Signer
  /** Of one attempt. */
  readonly timeoutMs: number
}

/** Signed requests that are repeated while that can help. */
export class S3Client {
  readonly addresses: S3Addresses
  readonly #options: S3ClientOptions
  readonly #transport: HttpTransport
  /** Keys derived for a day, by the signer. */
  readonly #signingKeys = new Map<string, ArrayBuffer>()

  constructor(options: S3ClientOptions) {
    this.addresses = options.addresses
    this.#options = options
    this.#transport = new HttpTransport(options.addresses.protocol)
  }

  /**
   * The answer, which is a success. Otherwise throws `S3Error`, or the error of the connection at the last attempt.
   * Requests may be made more than once: what changes something must be repeatable.
   */
  async send(request: S3Request): Promise<HttpAnswer> {
    const beganAtMs = REAL_ENVIRONMENT.monotonicMs()
    let isAfterUnknownOutcome = false
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(request, isAfterUnknownOutcome)
      } catch (error) {
        request.signal?.throwIfAborted()
        const isLast =
          attempt >= (request.attemptsMax ?? ATTEMPTS_MAX) || REAL_ENVIRONMENT.monotonicMs() - beganAtMs > RETRY_FOR_MS
        if (isLast || !(await this.#maySucceedLater(error))) throw error
        isAfterUnknownOutcome ||= !(error instanceof S3Error) || error.status >= 500
        await pause(attempt, request.signal)
      }
    }
  }

  close(): void {
    this.#transport.close()
    this.#signingKeys.clear()
  }

  async #maySucceedLater(error: unknown): Promise<boolean> {
    if (!(error instanceof S3Error)) return error instanceof Error && !(error instanceof TypeError)
    if (error.areCredentialsExpired) {
      this.#options.credentials.drop(await this.#options.credentials.get())
      return true
    }
    return error.isTransient
  }

  async #attempt(request: S3Request, isAfterUnknownOutcome: boolean): Promise<HttpAnswer> {
    const { method, key = '', query = {}, body = [], signal, into, answerBytesMax = ANSWER_BYTES_MAX } = request
    const credentials = await this.#options.credentials.get()
    const url = this.addresses.urlOf(key, query)
    const headers = await this.#signed(request, url, credentials)
    const timeoutMs = request.timeoutMs ?? this.#options.timeoutMs
    const answer = await this.#transport.send({ method, url, headers, body, answerBytesMax, into, timeoutMs, signal })
    if (isSuccess(request, answer)) return answer
    throw new S3Error(`${method} ${key === '' ? this.addresses.text : key}`, answer, isAfterUnknownOutcome)
  }

  async #signed(
    { method, headers = {}, body = [] }: S3Request,
    url: URL,
    { accessKeyId, secretAccessKey, sessionToken }: S3Credentials,
  ): Promise<Record<string, string>> {
    const bytes = body.reduce((sum, { length }) => sum + length, 0)
    const sent: Record<string, string> = { ...headers }
    if (bytes > 0) sent['content-md5'] = md5(body)
    const signer = new this.#options.signer({
      method,
      url: url.href,
      headers: sent,
      accessKeyId,
      secretAccessKey,
      sessionToken,
      service: 's3',
      region: this.addresses.region,
      cache: this.#signingKeys,
    })
    const signed = await signer.sign()
    for (const [name, value] of signed.headers) sent[name] = value
    if (method === 'PUT' || method === 'POST') sent['content-length'] = String(bytes)
    return sent
  }
}

/** A completed upload may report its failure in an answer that began as a success. */
function isSuccess({ method }: S3Request, { status, body }: HttpAnswer): boolean {
  if (status < 200 || status >= 300) return false
  return method !== 'POST' || !Buffer.from(body.subarray(0, 512)).includes('<Error>')
}

/** Every store knows it, and the store refuses what was changed on its way. */
function md5(body: readonly Uint8Array[]): string {
  const hash = createHash('md5')
  for (const part of body) hash.update(part)
  return hash.digest('base64')
}

/** A random part of a time that doubles, so that many who were refused do not come back together. */
async function pause(attempt: number, signal: AbortSignal | undefined): Promise<void> {
  const [random] = REAL_ENVIRONMENT.randomBytes(1)
  const waitMs = (Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** (attempt - 1)) * (random + 1)) / 256
  await delay(waitMs, undefined, { signal })
}
