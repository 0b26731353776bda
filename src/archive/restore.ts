import { join } from 'node:path'
import type { ClientOptions } from '../client/client.ts'
import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { copyAccessFiles } from './access-copy.ts'
import { ACCESS_FOLDER, type BackupContent, readBackup } from './backup-format.ts'
import { importFiles, type ImportProgress } from './import-file.ts'

/** How a backup is restored. */
export interface RestoreOptions {
  /** Aborts the restore, which can be repeated. */
  readonly signal?: AbortSignal
  /** Called after each request. */
  readonly onProgress?: (progress: ImportProgress & { readonly project: string }) => void
}

/**
 * The contents of the backup in the folder. Throws `not_found` if no backup was finished, `not_supported` for one of a
 * later version.
 */
export async function openBackup(folder: string): Promise<BackupContent> {
  const content = await readBackup(folder)
  if (content !== undefined) return content
  throw new StowageError('not_found', `${quoted(folder)} holds no finished backup`)
}

/** Puts the keys and tokens of a backup into a data folder. To be done before the server there is opened. */
export async function restoreAccess(backup: string, dataFolder: string): Promise<void> {
  await copyAccessFiles(join(backup, ACCESS_FOLDER), join(dataFolder, 'access'))
}

/** Imports every project of a backup into a server. A restore that broke off continues when it is started again. */
export async function restoreProjects(
  backup: string,
  server: ClientOptions,
  { signal, onProgress }: RestoreOptions = {},
): Promise<void> {
  for (const { project, files } of (await openBackup(backup)).projects)
    await importFiles(
      { ...server, projectId: project },
      files.map((file) => join(backup, file)),
      { ...(signal === undefined ? {} : { signal }), onProgress: (progress) => onProgress?.({ ...progress, project }) },
    )
}
