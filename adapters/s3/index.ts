/**
 * Blobs in an S3 store, for several servers over one storage, or for one server with much data.
 *
 * @module stowage/s3
 */

import type * as Aws4Fetch from 'aws4fetch'
import { BackgroundLoop } from '../../src/async/background-loop.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import type { BlobStore } from '../../src/storage/backend.ts'
import type { OpenedBlobs } from '../../src/storage/driver.ts'
import { guardedBlobs } from '../../src/storage/guard.ts'
import { ConditionCheck } from './condition-check.ts'
import { CredentialSource, type S3Credentials, type S3CredentialsProvider } from './credentials.ts'
import { S3Addresses, type S3Place } from './place.ts'
import { S3Blobs } from './s3-blobs.ts'
import { ATTEMPT_TIMEOUT_MS, S3Client } from './s3-client.ts'
import { abortLeftovers } from './uploads.ts'

export type { S3Credentials, S3CredentialsProvider, S3Place }

/** An S3 store, its credentials, and the bounds of requests. */
export interface S3BlobsOptions extends S3Place {
  /**
   * The keys, or what gives them: for example a provider of `@aws-sdk/credential-providers`. Default:
   * `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of the environment.
   */
  readonly credentials?: S3Credentials | S3CredentialsProvider
  /** The most time of one attempt of one request, which carries at most 8 MiB. Default: 30,000. */
  readonly timeoutMs?: number
  /** Receives failures beside any call: leftovers of dead uploads that could not be aborted. */
  readonly onBackgroundError?: (error: unknown) => void
}

/** Each request costs a way to the store and back. */
const READ_BYTES_PREFERRED = 4 * 1_048_576
const LEFTOVERS_INTERVAL_MS = 6 * 60 * 60_000

/**
 * Blobs in a bucket of AWS S3 or of any store with its protocol that knows `If-None-Match: *` for puts and for
 * completing multipart uploads. Several servers may use one bucket and prefix. Requests are signed by the package
 * `aws4fetch`, which the host installs. Requests that fail for the moment are repeated, up to six times within a
 * minute. Blobs above 8 MiB are put in parts; at most eight such puts hold 8 MiB each, and others wait.
 *
 * `ready` rejects if the bucket cannot be used. A store that ignores conditions is refused by `ready`, or by the first
 * put where nothing was put before. Throws `TypeError` for options that cannot work, such as an `http:` address of
 * another machine without `isHttpAllowed`.
 *
 * @example
 * import { s3Blobs } from 'stowage/s3'
 *
 * const blobs = s3Blobs({ endpoint: 'https://s3.example.org', bucket: 'models', prefix: 'stowage/' })
 */
export function s3Blobs(options: S3BlobsOptions): BlobStore {
  const addresses = new S3Addresses(options)
  const credentials = new CredentialSource(options.credentials)
  return guardedBlobs({
    readBytesPreferred: READ_BYTES_PREFERRED,
    place: addresses.text,
    open: () => openBlobs(options, addresses, credentials),
  })
}

async function openBlobs(
  { timeoutMs = ATTEMPT_TIMEOUT_MS, onBackgroundError = () => undefined }: S3BlobsOptions,
  addresses: S3Addresses,
  credentials: CredentialSource,
): Promise<OpenedBlobs> {
  const { AwsV4Signer } = await loadSigner()
  const client = new S3Client({ addresses, credentials, signer: AwsV4Signer, timeoutMs })
  const conditions = new ConditionCheck(client)
  try {
    await conditions.atOpening()
  } catch (error) {
    client.close()
    throw error
  }
  const closing = new AbortController()
  const sweep = async (): Promise<void> => {
    await abortLeftovers(client, closing.signal).catch((error: unknown) => {
      if (!closing.signal.aborted) onBackgroundError(error)
    })
  }
  const loop = new BackgroundLoop(sweep, LEFTOVERS_INTERVAL_MS, REAL_ENVIRONMENT)
  loop.soon()
  return {
    blobs: new S3Blobs(client, conditions),
    close: async () => {
      closing.abort(new Error('the storage is closed'))
      await loop.stop()
      client.close()
    },
  }
}

async function loadSigner(): Promise<typeof Aws4Fetch> {
  try {
    return await import('aws4fetch')
  } catch (cause) {
    throw new Error('stowage/s3 needs the package aws4fetch, which is not installed: npm install aws4fetch', { cause })
  }
}
