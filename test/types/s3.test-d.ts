import { expectAssignable, expectError, expectType } from 'tsd'
import type { BlobStore } from 'stowage/storage'
import { cachedBlobs } from 'stowage/cache'
import { s3Blobs, type S3BlobsOptions, type S3Credentials } from 'stowage/s3'

// Only the bucket is necessary.
expectType<BlobStore>(s3Blobs({ bucket: 'models' }))
expectError(s3Blobs({}))
expectError(s3Blobs({ bucket: 'models', addressing: 'virtual' }))

// Keys, or what gives them, as the providers of the AWS SDK do.
expectAssignable<S3BlobsOptions>({ bucket: 'models', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } })
expectAssignable<S3BlobsOptions>({
  bucket: 'models',
  credentials: async () => ({ accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 'c', expiration: new Date() }),
})
expectError<S3Credentials>({ accessKeyId: 'a' })

// A cache stands in front of any blobs.
declare const blobs: BlobStore
expectType<BlobStore>(cachedBlobs(blobs, { path: 'cache', sizeBytesMax: 100_000_000 }))
expectError(cachedBlobs(blobs, { path: 'cache' }))
