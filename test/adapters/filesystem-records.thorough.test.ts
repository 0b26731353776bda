import { join } from 'node:path'
import { describe, test } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { recordStoreConformance } from '../../src/storage/conformance/index.ts'
import { temporaryFolder } from '../support/folder.ts'

const path = join(temporaryFolder(), 'filesystem')

/** The records of the level backend, which every run of the tests covers, in another folder. */
describe('records in a filesystem backend', () => {
  for (const { name, run } of recordStoreConformance(() => filesystemBackend({ path }).records)) test(name, run)
})
