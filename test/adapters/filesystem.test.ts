import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { blobStoreConformance } from '../../src/storage/conformance/index.ts'
import { folderInMemory } from '../support/folder.ts'

const path = join(folderInMemory(), 'filesystem')

describe('blobs in a filesystem backend', () => {
  for (const { name, run } of blobStoreConformance(() => filesystemBackend({ path }).blobs, { thorough: false }))
    test(name, run)
})
