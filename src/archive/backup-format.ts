import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StowageError } from '../errors.ts'
import { quotedPath } from '../object/id.ts'

export const BACKUP_FILE = 'backup.json'
export const ACCESS_FOLDER = 'access'
export const PROJECTS_FOLDER = 'projects'
export const BACKUP_VERSION = 1

/** The contents of a backup. The file with them is replaced as a whole, at the end of each backup. */
export interface BackupContent {
  /** The name of the format. */
  readonly format: 'stowage-backup'
  /** The version of the format. */
  readonly version: number
  /** The id of the storage that is backed up. A restored storage gets it, too. */
  readonly storeId: string
  /** Everything that was acknowledged before is in it. ISO 8601. */
  readonly takenAt: string
  /** Whether the keys and tokens of the data folder are in it. */
  readonly hasAccess: boolean
  /** The projects in the backup. */
  readonly projects: readonly BackedUpProject[]
  /** Archives of a history that the server does not have any more. No restore uses them. */
  readonly replaced: readonly ReplacedArchives[]
}

/** The archives of one project, from a full one on, as paths within the backup. */
export interface BackedUpProject {
  /** The project. */
  readonly project: string
  /** Its archives, the full one first. */
  readonly files: readonly string[]
  /** The time of the first backup in which the server did not list the project any more; absent if it does. */
  readonly missingSince?: string
}

/** Earlier archives of a project. */
export interface ReplacedArchives extends Omit<BackedUpProject, 'missingSince'> {
  /** The time of the backup that began another chain. */
  readonly replacedAt: string
}

/** The contents of the folder; `undefined` if no backup was finished. Throws `not_supported` for a later version. */
export async function readBackup(folder: string): Promise<BackupContent | undefined> {
  const text = await readFile(join(folder, BACKUP_FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const content = parsed(text)
  if (content?.format !== 'stowage-backup')
    throw new StowageError(
      'corrupt_data',
      `${quotedPath(folder)} holds a ${BACKUP_FILE} that is damaged or of something else`,
    )
  if (content.version > BACKUP_VERSION)
    throw new StowageError(
      'not_supported',
      `the backup ${quotedPath(folder)} has version ${content.version}; this release reads versions up to ${BACKUP_VERSION}`,
    )
  return content
}

function parsed(text: string): BackupContent | undefined {
  try {
    return JSON.parse(text) as BackupContent
  } catch {
    return undefined
  }
}
