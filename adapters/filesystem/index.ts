import { join, resolve } from 'node:path'
import { Semaphore } from '../../src/async/semaphore.ts'
import type { BlobStore, StorageBackend } from '../../src/storage/backend.ts'
import type { OpenedBlobs, OpenedDriver } from '../../src/storage/driver.ts'
import { guardedBackend, guardedBlobs } from '../../src/storage/guard.ts'
import { openDataFolder, openSharedFolder } from '../../src/data-folder/data-folder.ts'
import type { OpenFolder } from '../../src/data-folder/data-folder.ts'
import { FileBlobs, removeAbandoned, removeIncoming } from './file-blobs.ts'
import type { FilesPart } from './file-blobs.ts'
import { FolderSyncs } from './folder-syncs.ts'
import { WriteGuard } from '../common/write-guard.ts'
import { closeDatabase, type OpenDatabase, openRecordsDatabase } from '../level/database.ts'
import { LEVEL_RECORD_LIMITS, LevelRecords } from '../level/level-records.ts'
import type { RecordsPart } from '../level/level-records.ts'
import { LevelWriter, SYNCS_MAX } from '../level/level-writer.ts'

/** The folder of packs as plain files, with their records in LevelDB beside them. */
export interface FilesystemBackendOptions {
  /** The folder that holds everything. It is made when there is none. */
  readonly path: string
  /**
   * Free space below which writes are refused with `ENOSPC`, so that the database of the records never runs full. 16
   * MB.
   */
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

interface FilesystemContent {
  readonly records: RecordsPart & OpenDatabase
  readonly files: FilesPart
}

/**
 * Blobs as plain files under `packs`, records in a LevelDB under `records`. One process holds the folder at a time. A
 * write or sync that fails poisons the storage until it is opened again; a full disk only refuses writes that do not
 * fit.
 *
 * @example
 * import { createObjectService, openAccess } from 'stowage'
 * import { filesystemBackend } from 'stowage/filesystem'
 *
 * const service = createObjectService({ backend: filesystemBackend({ path: './data' }), access: openAccess() })
 * await service.ready()
 * await service.close()
 */
export function filesystemBackend(options: FilesystemBackendOptions): StorageBackend {
  // A host that changes its working folder later means the same data.
  const pinned = { ...options, path: resolve(options.path) }
  return guardedBackend({ limits: LEVEL_RECORD_LIMITS, open: () => openDriver(pinned) })
}

/** The folder of packs as plain files, without records. */
export interface FilesystemBlobsOptions {
  /** The folder that holds the blobs, on a disk that several servers may share. It is made when there is none. */
  readonly path: string
  /**
   * UNSAFE: acknowledged data is lost when the machine stops. Only for tests of durability, as the control that must
   * fail.
   */
  readonly unsafeNoSync?: boolean
}

/**
 * Blobs alone, as plain files, for records that lie elsewhere: `combinedBackend` puts both halves together. Several
 * servers may use the folder at once, on a shared disk too, so no process holds it. A blob appears by one hard link,
 * which only one of them can make, after its content is synced; a file of a put that a crash cut short goes a day
 * later. The file system must have hard links, and show a new file to every server at once: NFS needs the mount option
 * `lookupcache=positive` or `none`.
 *
 * @example
 * import { filesystemBlobs } from 'stowage/filesystem'
 * import { levelRecords } from 'stowage/level'
 * import { combinedBackend } from 'stowage/storage'
 *
 * const blobs = filesystemBlobs({ path: './shared-disk' })
 * const backend = combinedBackend({ records: levelRecords({ path: './records' }), blobs })
 * await backend.close()
 */
export function filesystemBlobs(options: FilesystemBlobsOptions): BlobStore {
  const path = resolve(options.path)
  return guardedBlobs({ place: path, open: () => openBlobs({ ...options, path }) })
}

async function openBlobs({ path, unsafeNoSync = false }: FilesystemBlobsOptions): Promise<OpenedBlobs> {
  await openSharedFolder({ path, kind: 'filesystem-blobs', folders: ['packs', 'incoming'] })
  await removeAbandoned(join(path, 'incoming'))
  const [guard, syncs] = [new WriteGuard(path, 0), new Semaphore(SYNCS_MAX)]
  const blobs = new FileBlobs({ ...filesPart(path, guard, syncs, !unsafeNoSync), isShared: true })
  return { blobs, close: () => blobs.close() }
}

async function openDriver(options: FilesystemBackendOptions): Promise<OpenedDriver> {
  const folder = await openFilesystemFolder(options)
  const blobs = new FileBlobs(folder.content.files)
  return {
    records: new LevelRecords(folder.content.records),
    blobs,
    close: async () => {
      await blobs.close()
      await folder.close()
    },
  }
}

function openFilesystemFolder({
  path,
  diskReserveBytes,
  unsafeNoSync = false,
  onSalvaged,
}: FilesystemBackendOptions): Promise<OpenFolder<FilesystemContent>> {
  return openDataFolder<FilesystemContent>({
    path,
    kind: 'filesystem',
    databases: ['records'],
    folders: ['packs', 'incoming'],
    mayBeIncomplete: onSalvaged !== undefined,
    open: async (options) => {
      const opened = await openRecordsDatabase(join(path, 'records'), { ...options, onSalvaged })
      try {
        await removeIncoming(join(path, 'incoming'))
      } catch (error) {
        await closeDatabase(opened)
        throw error
      }
      const [guard, syncs, sync] = [new WriteGuard(path, diskReserveBytes), new Semaphore(SYNCS_MAX), !unsafeNoSync]
      return {
        records: { ...opened, writer: new LevelWriter(opened, { guard, syncs, sync }) },
        files: filesPart(path, guard, syncs, sync),
      }
    },
    close: ({ records }) => closeDatabase(records),
  })
}

function filesPart(path: string, guard: WriteGuard, syncs: Semaphore, sync: boolean): FilesPart {
  const noSync = async (): Promise<void> => undefined
  return {
    root: join(path, 'packs'),
    incoming: join(path, 'incoming'),
    guard,
    syncs,
    folders: sync ? new FolderSyncs(syncs) : new FolderSyncs(syncs, noSync),
    syncFile: sync ? (file) => file.sync() : noSync,
  }
}
