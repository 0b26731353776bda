import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientOptions } from '../client/client.ts'
import { StowageError } from '../errors.ts'
import { quoted, quotedPath } from '../object/id.ts'
import { copyAccessFiles } from './access-copy.ts'
import { ACCESS_FOLDER, BACKUP_FILE, type BackupContent, readBackup } from './backup-format.ts'
import { importFiles, type ImportProgress } from './import-file.ts'

/** How a backup is restored. */
export interface RestoreOptions {
  /** Aborts the restore, which can be repeated. */
  readonly signal?: AbortSignal
  /** Called after each request. */
  readonly onProgress?: (progress: ImportProgress & { readonly project: string }) => void
}

/**
 * The contents of the backup in the folder. Throws `not_found` if no backup was finished or one of its archives is
 * missing, `not_supported` for one of a later version.
 */
export async function openBackup(folder: string): Promise<BackupContent> {
  const content = await readBackup(folder)
  if (content === undefined)
    throw new StowageError('not_found', `${quotedPath(folder)} holds no finished backup, with a ${BACKUP_FILE}`)
  for (const { project, files } of content.projects)
    for (const file of files)
      if (!existsSync(join(folder, file)))
        throw new StowageError(
          'not_found',
          `the backup ${quotedPath(folder)} lacks the archive ${quotedPath(file)} of the project ${quoted(project)}, which its ${BACKUP_FILE} names; put it back, or restore another backup`,
        )
  return content
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
