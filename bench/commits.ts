import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { filesystemBackend, filesystemBlobs } from '../adapters/filesystem/index.ts'
import { postgresRecords } from '../adapters/postgres/index.ts'
import { inspectBatches } from '../src/inspect/inspect.ts'
import { DEFAULT_LIMITS } from '../src/limits.ts'
import type { StorageBackend } from '../src/storage/backend.ts'
import { combinedBackend } from '../src/storage/combined-backend.ts'
import { asGuarded } from '../src/storage/guard.ts'
import { createPackStore, type PackStore } from '../src/store/pack-store.ts'
import { printRows, round, type Row } from './measure.ts'
import { countOf, orUsage, readOptions } from './options.ts'

/*
 * `npm run bench:commits [-- --postgres URL]`: uploads of one small object each. Those to one project commit one after the other; those to several
 * projects do not. With an address, records are in that database, in a schema that is left there.
 */

const USAGE = 'npm run bench:commits -- [--uploads N] [--folder PATH] [--postgres URL]'
const chosen = readOptions(USAGE, {
  uploads: { type: 'string', default: '500' },
  folder: { type: 'string', default: tmpdir() },
  postgres: { type: 'string' },
})
const uploads = orUsage(USAGE, () => countOf('uploads', chosen.uploads))
const CASES = [
  { clients: 1, projects: 1 },
  { clients: 32, projects: 1 },
  { clients: 32, projects: 32 },
] as const
const scratch = mkdtempSync(join(chosen.folder, 'stowage-commits-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))

const store = createPackStore({ backend: openBackend(), onBackgroundError: console.error })
await store.ready()
const rows: Row[] = []
for (const { clients, projects } of CASES) {
  const began = performance.now()
  let sent = 0
  const client = async (): Promise<void> => {
    for (let upload = sent++; upload < uploads; upload = sent++)
      await uploadOne(store, `${clients}-${projects}-${upload % projects}`, upload)
  }
  await Promise.all(Array.from({ length: clients }, client))
  const seconds = (performance.now() - began) / 1_000
  rows.push({
    what: `${clients} clients, ${projects} ${projects === 1 ? 'project' : 'projects'}`,
    value: `${round(uploads / seconds)} uploads/s`,
  })
}
await store.close()
printRows(`Uploads of one object, records in ${chosen.postgres === undefined ? 'LevelDB' : 'PostgreSQL'}`, rows)

function openBackend(): StorageBackend {
  if (chosen.postgres === undefined) return asGuarded(filesystemBackend({ path: scratch }))
  const records = postgresRecords({ connectionString: chosen.postgres, schema: `commits_${process.pid}` })
  return combinedBackend({ records, blobs: filesystemBlobs({ path: scratch }) })
}

async function uploadOne(to: PackStore, project: string, number: number): Promise<void> {
  const { signal } = new AbortController()
  const bytes = Buffer.from(JSON.stringify({ id: `object-${number}`, number }))
  const given = (async function* () {
    yield [{ bytes, part: 0, index: 0 }]
  })()
  await to.put(project, inspectBatches(given, DEFAULT_LIMITS, { signal }), { signal })
}
