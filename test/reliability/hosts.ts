import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import type { CommonServiceOptions, StorageBackend } from '../../src/index.ts'
import { type Served, served } from '../http/served.ts'

export interface FolderHost extends Served {
  /** Where the data folder lies; some levels above it, where `below` says so. */
  readonly folder: string
}

export interface FolderHostOptions {
  readonly below?: string
  readonly backendAt?: (path: string) => StorageBackend
  readonly service?: Partial<CommonServiceOptions<unknown>>
}

/** A server over a data folder of its own; both end with the test, the folder last. */
export async function servedFromFolder(t: TestContext, options: FolderHostOptions = {}): Promise<FolderHost> {
  const { below = '', backendAt = (path) => filesystemBackend({ path }), service = {} } = options
  const folder = await mkdtemp(join(tmpdir(), 'stowage-reliability-'))
  const host = await served(t, { ...service, backend: backendAt(join(folder, below)) })
  t.after(() => rm(folder, { recursive: true, force: true }))
  return { ...host, folder }
}
