import { join } from 'node:path'
import { describe, test } from 'node:test'
import { cachedBlobs } from '../../adapters/cache/index.ts'
import { filesystemBlobs } from '../../adapters/filesystem/index.ts'
import { blobStoreConformance } from '../../src/storage/conformance/index.ts'
import { folderInMemory } from '../support/folder.ts'

const folder = folderInMemory()
const options = { path: join(folder, 'cache'), sizeBytesMax: 64 * 1_048_576 }

describe('cached blobs', () => {
  const open = () => cachedBlobs(filesystemBlobs({ path: join(folder, 'blobs') }), options)
  for (const { name, run } of blobStoreConformance(open)) test(name, run)
})
