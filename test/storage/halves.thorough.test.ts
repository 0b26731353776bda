import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesystemBlobs } from '../../adapters/filesystem/index.ts'
import { levelRecords } from '../../adapters/level/index.ts'
import { memoryBlobs, memoryRecords } from '../../adapters/memory/index.ts'
import type { BlobStore, StorageBackend } from '../../src/storage/backend.ts'
import { combinedBackend } from '../../src/storage/combined-backend.ts'
import { blobStoreConformance, recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { folderInMemory } from '../support/folder.ts'

/* The suites over halves: the parts that they are made of pass in npm test, as halves of one backend. */

const root = folderInMemory()

function combined(): StorageBackend {
  return combinedBackend({
    records: levelRecords({ path: join(root, 'combined-records') }),
    blobs: filesystemBlobs({ path: join(root, 'combined-blobs') }),
  })
}

function blobsInFiles(): BlobStore {
  return filesystemBlobs({ path: join(root, 'blobs') })
}

const RECORDS = {
  'in a LevelDB alone': () => levelRecords({ path: join(root, 'records') }),
  'in memory alone': memoryRecords,
  'of a combined backend': () => combined().records,
}

const BLOBS = { 'in memory alone': memoryBlobs, 'of a combined backend': () => combined().blobs }

for (const [where, open] of Object.entries(RECORDS))
  describe(`records ${where}`, () => {
    for (const { name, run, untested } of recordStoreConformance(open)) test(name, { skip: untested }, run)
  })

describe('blobs in files alone', () => {
  const openTwo = (): readonly [BlobStore, BlobStore] => [blobsInFiles(), blobsInFiles()]
  for (const { name, run, untested } of blobStoreConformance(blobsInFiles, { openTwo }))
    test(name, { skip: untested }, run)
})

for (const [where, open] of Object.entries(BLOBS))
  describe(`blobs ${where}`, () => {
    for (const { name, run, untested } of blobStoreConformance(open)) test(name, { skip: untested }, run)
  })
