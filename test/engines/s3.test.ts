import { after, describe, test } from 'node:test'
import { s3Blobs } from '../../adapters/s3/index.ts'
import { blobStoreConformance } from '../../src/storage/conformance/index.ts'
import { startS3Engine } from './s3-engine.ts'

const engine = await startS3Engine({ after })

describe('blobs in an S3 store', () => {
  const options = { ...engine.options, prefix: 'suite/' }
  for (const { name, run } of blobStoreConformance(() => s3Blobs(options))) test(name, run)
})
