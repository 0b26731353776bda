import { join, resolve } from 'node:path'
import type { StorageBackend } from '../src/storage/backend.ts'
import { openDataFolder } from '../src/storage/data-folder.ts'
import type { OpenFolder } from '../src/storage/data-folder.ts'
import { Health } from './health.ts'
import { LevelBlobs, removeLeftovers } from './level-blobs.ts'
import type { BlobsPart } from './level-blobs.ts'
import { closeDatabase, openBlobsDatabase, openRecordsDatabase } from './level-database.ts'
import type { DatabaseOptions, LevelDatabase } from './level-database.ts'
import { LevelRecords } from './level-records.ts'
import type { RecordsPart } from './level-records.ts'
import { LevelWriter } from './level-writer.ts'
import { SharedFolder } from './shared-folder.ts'
import { Slots, SYNCS_MAX } from './slots.ts'

/** Where everything lies in one LevelDB. */
export interface LevelBackendOptions {
  /** The folder that holds everything. It is made when there is none. */
  readonly path: string
  /** Free space below which writes are refused with `ENOSPC`, so that the database itself never runs full. 16 MB. */
  readonly diskReserveBytes?: number
  /** UNSAFE: acknowledged data is lost when the machine stops. Only for tests of durability, as the control that must fail. */
  readonly unsafeNoSync?: boolean
  /** Opens a folder whose database is damaged too, with what can be saved of it, and hears what was done. Afterwards the store must be made anew from its packs. */
  readonly salvage?: (what: string) => void
}

interface LevelContent {
  readonly records: RecordsPart
  readonly blobs: BlobsPart
}

/**
 * Records and blobs in one folder, in two LevelDBs: chunks of blobs come in the order of their keys and are compressed already, so a database of their own
 * never merges them with records or with each other. Resident memory grows with what is read, up to 256 MB: good to some GB.
 */
export function levelBackend(options: LevelBackendOptions): StorageBackend {
  // A host that changes its working folder later means the same data.
  const pinned = { ...options, path: resolve(options.path) }
  const folder = new SharedFolder(() => openLevelFolder(pinned))
  const records = new LevelRecords(
    async () => (await folder.use('records')).records,
    () => folder.release('records'),
  )
  const blobs = new LevelBlobs(
    async () => (await folder.use('blobs')).blobs,
    () => folder.release('blobs'),
  )
  return {
    records,
    blobs,
    ready: async () => {
      await folder.use('records')
      await folder.use('blobs')
    },
    close: async () => {
      await Promise.all([records.close(), blobs.close()])
    },
  }
}

function openLevelFolder({
  path,
  diskReserveBytes,
  unsafeNoSync = false,
  salvage,
}: LevelBackendOptions): Promise<OpenFolder<LevelContent>> {
  return openDataFolder<LevelContent>({
    path,
    kind: 'level',
    databases: ['records', 'blobs'],
    folders: [],
    mayBeIncomplete: salvage !== undefined,
    open: (options) => openContent(path, { ...options, salvage }, new Health(path, diskReserveBytes), !unsafeNoSync),
    close: async ({ records, blobs }) => {
      await closeDatabase(records.database)
      await closeDatabase(blobs.database)
    },
  })
}

async function openContent(
  path: string,
  options: DatabaseOptions,
  health: Health,
  sync: boolean,
): Promise<LevelContent> {
  const syncs = new Slots(SYNCS_MAX)
  const records = await openRecordsDatabase(join(path, 'records'), options)
  try {
    const blobs = await openCleanBlobs(join(path, 'blobs'), options)
    return {
      records: { database: records, writer: new LevelWriter(records, { health, syncs, sync }) },
      blobs: { database: blobs, writer: new LevelWriter(blobs, { health, syncs, sync }), health },
    }
  } catch (error) {
    await records.close()
    throw error
  }
}

async function openCleanBlobs(path: string, options: DatabaseOptions): Promise<LevelDatabase> {
  const blobs = await openBlobsDatabase(path, options)
  try {
    await removeLeftovers(blobs)
    return blobs
  } catch (error) {
    await blobs.close()
    throw error
  }
}
