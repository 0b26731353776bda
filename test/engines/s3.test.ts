import { after, describe } from 'node:test'
import { s3Blobs } from '../../adapters/s3/index.ts'
import type { BlobStore } from '../../src/storage/backend.ts'
import { blobStoreConformance } from '../../src/storage/conformance/index.ts'
import { CuttingProxy } from './cutting-proxy.ts'
import { startS3Engine } from './s3-engine.ts'
import { testEveryCase } from './suite.ts'

const engine = await startS3Engine({ after })
const proxy = await CuttingProxy.start({ after }, engine.port)

function open(): BlobStore {
  return s3Blobs({ ...engine.options, endpoint: `http://127.0.0.1:${proxy.port}`, prefix: 'suite/' })
}

async function restart(): Promise<void> {
  await engine.kill()
  await engine.start()
}

describe('blobs in an S3 store', () => {
  const faults = { cutAt: (message: number) => proxy.cutAt(message), restart }
  testEveryCase(blobStoreConformance(open, { openTwo: () => [open(), open()], faults }))
})
