import { join, resolve } from 'node:path'
import { Semaphore } from '../../src/async/semaphore.ts'
import type { RecordStore, StorageBackend } from '../../src/storage/backend.ts'
import type { OpenedDriver, OpenedRecords } from '../../src/storage/driver.ts'
import { guardedBackend, guardedRecords } from '../../src/storage/guard.ts'
import { openDataFolder } from '../../src/data-folder/data-folder.ts'
import type { OpenFolder } from '../../src/data-folder/data-folder.ts'
import { WriteGuard } from '../common/write-guard.ts'
import { LevelBlobs, removeLeftovers } from './level-blobs.ts'
import type { BlobsPart } from './level-blobs.ts'
import { closeDatabase, openBlobsDatabase, openRecordsDatabase } from './database.ts'
import type { DatabaseOptions, OpenDatabase } from './database.ts'
import { LEVEL_RECORD_LIMITS, LevelRecords } from './level-records.ts'
import type { RecordsPart } from './level-records.ts'
import { LevelWriter, SYNCS_MAX } from './level-writer.ts'

/** The folder of the LevelDBs. */
export interface LevelBackendOptions {
  /** The folder that holds everything. It is made when there is none. */
  readonly path: string
  /** Free space below which writes are refused with `ENOSPC`, so that the database itself never runs full. 16 MB. */
  readonly diskReserveBytes?: number
  /**
   * UNSAFE: acknowledged data is lost when the machine stops. Only for tests of durability, as the control that must
   * fail.
   */
  readonly unsafeNoSync?: boolean
  /**
   * Opens a folder whose database is damaged too, with everything that can be saved, and receives the steps. Afterwards
   * the store must be rebuilt from its packs.
   */
  readonly onSalvaged?: (what: string) => void
}

interface LevelContent {
  readonly records: RecordsPart & OpenDatabase
  readonly blobs: BlobsPart & OpenDatabase
}

/**
 * Records and blobs in one folder, in two LevelDBs: chunks of blobs arrive in the order of their keys and are
 * compressed already, so their separate database never merges them with records or with each other. Resident memory
 * grows with reads, up to 192 MB: suitable for a few GB.
 *
 * @example
 * import { createObjectService, openAccess } from 'stowage'
 * import { levelBackend } from 'stowage/level'
 *
 * const service = createObjectService({ backend: levelBackend({ path: './data' }), access: openAccess() })
 * await service.ready()
 * await service.close()
 */
export function levelBackend(options: LevelBackendOptions): StorageBackend {
  // A host that changes its working folder later means the same data.
  const pinned = { ...options, path: resolve(options.path) }
  return guardedBackend({ limits: LEVEL_RECORD_LIMITS, open: () => openDriver(pinned) })
}

/**
 * Records alone, in a LevelDB in a folder of their own, which one process holds at a time. For one server whose blobs
 * lie elsewhere: `combinedBackend` puts both halves together.
 *
 * @example
 * import { filesystemBlobs } from 'stowage/filesystem'
 * import { levelRecords } from 'stowage/level'
 * import { combinedBackend } from 'stowage/storage'
 *
 * const records = levelRecords({ path: './fast-disk' })
 * const backend = combinedBackend({ records, blobs: filesystemBlobs({ path: './large-disk' }) })
 * await backend.close()
 */
export function levelRecords(options: LevelBackendOptions): RecordStore {
  const path = resolve(options.path)
  return guardedRecords({ limits: LEVEL_RECORD_LIMITS, place: path, open: () => openRecords({ ...options, path }) })
}

async function openRecords({
  path,
  diskReserveBytes,
  unsafeNoSync = false,
  onSalvaged,
}: LevelBackendOptions): Promise<OpenedRecords> {
  const folder = await openDataFolder<OpenDatabase>({
    path,
    kind: 'level-records',
    databases: ['records'],
    folders: [],
    mayBeIncomplete: onSalvaged !== undefined,
    open: (options) => openRecordsDatabase(join(path, 'records'), { ...options, onSalvaged }),
    close: closeDatabase,
  })
  const { content } = folder
  const [guard, syncs] = [new WriteGuard(path, diskReserveBytes), new Semaphore(SYNCS_MAX)]
  const writer = new LevelWriter(content, { guard, syncs, sync: !unsafeNoSync })
  return { records: new LevelRecords({ ...content, writer }), close: () => folder.close() }
}

async function openDriver(options: LevelBackendOptions): Promise<OpenedDriver> {
  const folder = await openLevelFolder(options)
  const { records, blobs } = folder.content
  return { records: new LevelRecords(records), blobs: new LevelBlobs(blobs), close: () => folder.close() }
}

function openLevelFolder({
  path,
  diskReserveBytes,
  unsafeNoSync = false,
  onSalvaged,
}: LevelBackendOptions): Promise<OpenFolder<LevelContent>> {
  return openDataFolder<LevelContent>({
    path,
    kind: 'level',
    databases: ['records', 'blobs'],
    folders: [],
    mayBeIncomplete: onSalvaged !== undefined,
    open: (options) =>
      openContent(path, { ...options, onSalvaged }, new WriteGuard(path, diskReserveBytes), !unsafeNoSync),
    close: async ({ records, blobs }) => {
      await closeDatabase(records)
      await closeDatabase(blobs)
    },
  })
}

async function openContent(
  path: string,
  options: DatabaseOptions,
  guard: WriteGuard,
  sync: boolean,
): Promise<LevelContent> {
  const syncs = new Semaphore(SYNCS_MAX)
  const records = await openRecordsDatabase(join(path, 'records'), options)
  try {
    const blobs = await openCleanBlobs(join(path, 'blobs'), options)
    return {
      records: { ...records, writer: new LevelWriter(records, { guard, syncs, sync }) },
      blobs: { ...blobs, writer: new LevelWriter(blobs, { guard, syncs, sync }), guard },
    }
  } catch (error) {
    await closeDatabase(records)
    throw error
  }
}

async function openCleanBlobs(path: string, options: DatabaseOptions): Promise<OpenDatabase> {
  const blobs = await openBlobsDatabase(path, options)
  try {
    await removeLeftovers(blobs.database)
    return blobs
  } catch (error) {
    await closeDatabase(blobs)
    throw error
  }
}
