import type { HttpAnswer } from './http-transport.ts'
import { textOf } from './xml.ts'

const FULL_CODES: ReadonlySet<string> = new Set([
  'XMinioStorageFull',
  'InsufficientStorage',
  'QuotaExceeded',
  'XMinioAdminBucketQuotaExceeded',
  'NoSpaceLeftOnDevice',
])
const RETRIED_CODES: ReadonlySet<string> = new Set([
  'SlowDown',
  'SlowDownRead',
  'SlowDownWrite',
  'InternalError',
  'RequestTimeout',
  'ServiceUnavailable',
  'ConditionalRequestConflict',
  'OperationAborted',
  'BadDigest',
  'XMinioServerNotInitialized',
])
const EXPIRED_CODES: ReadonlySet<string> = new Set(['ExpiredToken', 'ExpiredTokenException', 'TokenRefreshRequired'])
const INSUFFICIENT_STORAGE_STATUS = 507
const RETRIED_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

/** An answer of the S3 store that is no success. */
export class S3Error extends Error {
  override readonly name = 'S3Error'
  /** The status of the answer. */
  readonly status: number
  /** The code of S3, such as `SlowDown`; the status when the answer has none. */
  readonly s3Code: string
  /** `ENOSPC` if the store is full, by which the core knows it. */
  readonly code: string | undefined
  /** An earlier attempt of the same request had no answer, so it may have been a success. */
  readonly isAfterUnknownOutcome: boolean

  constructor(what: string, answer: HttpAnswer, isAfterUnknownOutcome: boolean) {
    const xml = Buffer.from(answer.body).toString('utf8')
    const s3Code = textOf(xml, 'Code') ?? String(answer.status)
    const requestId = answer.headers['x-amz-request-id']
    const hint = HINTS[s3Code]
    super(
      `${what}: the S3 store answered ${answer.status} ${s3Code}${reasonOf(xml)}${
        typeof requestId === 'string' ? ` (request ${requestId})` : ''
      }${hint === undefined ? '' : `; ${hint}`}`,
    )
    this.status = answer.status
    this.s3Code = s3Code
    this.code = isFull(answer.status, s3Code) ? 'ENOSPC' : undefined
    this.isAfterUnknownOutcome = isAfterUnknownOutcome
  }

  /** Whether the same request may succeed a little later. */
  get isTransient(): boolean {
    if (this.isFull) return false
    return RETRIED_CODES.has(this.s3Code) || RETRIED_STATUSES.has(this.status)
  }

  get isFull(): boolean {
    return this.code !== undefined
  }

  /** The bucket is there, and the object is not. */
  get isAbsentObject(): boolean {
    return this.status === 404 && this.s3Code !== 'NoSuchBucket'
  }

  get areCredentialsExpired(): boolean {
    return EXPIRED_CODES.has(this.s3Code)
  }
}

const HINTS: Readonly<Record<string, string>> = {
  NoSuchBucket: 'create the bucket, or correct its name',
  AccessDenied: 'the credentials must allow to read, write, delete and list objects, and to abort multipart uploads',
  InvalidAccessKeyId: 'correct the access key (AWS_ACCESS_KEY_ID, unless it comes from elsewhere)',
  SignatureDoesNotMatch:
    'correct the secret key (AWS_SECRET_ACCESS_KEY, unless it comes from elsewhere), or the region',
  RequestTimeTooSkewed: "the clock of this machine differs too much from the store's: set it by NTP",
  AuthorizationHeaderMalformed: 'correct the region',
}

function reasonOf(xml: string): string {
  const message = textOf(xml, 'Message')
  return message === undefined || message === '' ? '' : `: ${message}`
}

function isFull(status: number, s3Code: string): boolean {
  return status === INSUFFICIENT_STORAGE_STATUS || FULL_CODES.has(s3Code)
}
