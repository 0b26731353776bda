import { join } from 'node:path'
import { describe, test } from 'node:test'
import { levelBackend } from '../../adapters/level/index.ts'
import { blobStoreConformance, recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { folderInMemory } from '../support/folder.ts'

const path = join(folderInMemory(), 'level')

describe('records in a level backend', () => {
  for (const { name, run } of recordStoreConformance(() => levelBackend({ path }).records, { thorough: false }))
    test(name, run)
})

describe('blobs in a level backend', () => {
  for (const { name, run } of blobStoreConformance(() => levelBackend({ path }).blobs, { thorough: false }))
    test(name, run)
})
