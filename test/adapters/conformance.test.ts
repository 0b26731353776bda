import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem.ts'
import { levelBackend } from '../../adapters/level.ts'
import { memoryBackend } from '../../adapters/memory.ts'
import { blobStoreConformance, recordStoreConformance } from '../../src/storage/conformance/index.ts'

const folder = await mkdtemp(join(tmpdir(), 'stowage-conformance-'))
after(() => rm(folder, { recursive: true, force: true }))

describe('memory', () => {
  for (const { name, run } of recordStoreConformance(() => memoryBackend().records, { persistent: false })) test(name, run)
  for (const { name, run } of blobStoreConformance(() => memoryBackend().blobs, { persistent: false, boundedMemory: false })) test(name, run)
})

describe('level', () => {
  const path = join(folder, 'level')
  for (const { name, run } of recordStoreConformance(() => levelBackend({ path }).records)) test(name, run)
  for (const { name, run } of blobStoreConformance(() => levelBackend({ path }).blobs)) test(name, run)
})

describe('filesystem', () => {
  const path = join(folder, 'filesystem')
  for (const { name, run } of recordStoreConformance(() => filesystemBackend({ path }).records)) test(name, run)
  for (const { name, run } of blobStoreConformance(() => filesystemBackend({ path }).blobs)) test(name, run)
})
