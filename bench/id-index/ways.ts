import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { levelRecords } from '../../adapters/level/index.ts'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import type { IdIndex } from './id-index.ts'
import { RecordIndex } from './record-index.ts'
import { SegmentIndex } from './segment-index.ts'

export const WAYS = ['level', 'postgres', 'segments', 'segments-file-filters'] as const
export type Way = (typeof WAYS)[number]

export interface WayOptions {
  readonly folder: string
  readonly segments: number
  /** `postgres://...`; only for that way. */
  readonly postgres: string | undefined
}

export async function openWay(way: Way, options: WayOptions): Promise<IdIndex> {
  if (way === 'level') return levelIndex(options.folder)
  if (way === 'postgres') return postgresIndex(options.postgres)
  return new SegmentIndex(options.folder, { segments: options.segments, areFiltersInMemory: way === 'segments' })
}

function levelIndex(folder: string): IdIndex {
  const path = join(folder, 'level')
  return new RecordIndex(levelRecords({ path }), async () => folderBytes(path))
}

/** In a schema of its own, which goes when the index is closed. */
async function postgresIndex(connectionString: string | undefined): Promise<IdIndex> {
  if (connectionString === undefined) throw new Error('the way "postgres" needs --postgres postgres://...')
  const { Client } = (await import('pg')).default
  const client = new Client({ connectionString })
  await client.connect()
  const schema = `id_index_${process.pid}`
  const drop = async (): Promise<void> => void (await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`))
  const index = new RecordIndex(postgresRecords({ connectionString, schema }), async () => {
    const { rows } = await client.query<{ bytes: string }>(
      `SELECT pg_total_relation_size('${schema}.records') AS bytes`,
    )
    return Number(rows[0].bytes)
  })
  return {
    build: index.build.bind(index),
    find: index.find.bind(index),
    sizeBytes: index.sizeBytes.bind(index),
    close: async () => {
      await index.close()
      await drop()
      await client.end()
    },
  }
}

function folderBytes(path: string): number {
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
