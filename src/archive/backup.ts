import { createHash } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientOptions } from '../client/client.ts'
import { ClientError } from '../client/common/errors.ts'
import { writeFileDurably } from '../data-folder/durable-files.ts'
import { ensurePrivateFolder } from '../data-folder/exclusive-file.ts'
import { copyAccessFiles } from './access-copy.ts'
import {
  ACCESS_FOLDER,
  type BackedUpProject,
  BACKUP_FILE,
  BACKUP_VERSION,
  type BackupContent,
  PROJECTS_FOLDER,
  readBackup,
} from './backup-format.ts'
import { type ExportProgress, exportToFile } from './export-file.ts'
import type { ExportBase, Manifest } from './format.ts'
import { listProjects } from './list-projects.ts'
import { ArchiveReader } from './read-archive.ts'

/** How a server is backed up. */
export interface BackupOptions {
  /** Aborts the backup, which can be repeated. */
  readonly signal?: AbortSignal
  /**
   * The folder `access` of the server's data folder: its keys and tokens become part of the backup, and so do sealed
   * secrets.
   */
  readonly accessFolder?: string
  /** Makes full archives, in place of the existing ones. Otherwise only data since the last backup is read. */
  readonly isFull?: boolean
  /** Called as the archives grow. */
  readonly onProgress?: (progress: ExportProgress & { readonly project: string }) => void
}

const NUMBER_DIGITS = 8
const ARCHIVE = /^\d+\.tar$/

/** One archive of a chain. */
interface Link extends ExportBase {
  readonly name: string
  readonly manifest: Manifest
}

/**
 * Backs up every project that the token may read, and the keys and tokens of the server, into a folder. The server
 * continues. Everything that was acknowledged before is in the backup. A backup that broke off continues when it is
 * started again; later ones add new data.
 */
export async function backupServer(
  server: ClientOptions,
  folder: string,
  options: BackupOptions = {},
): Promise<BackupContent> {
  const takenAt = new Date().toISOString()
  await ensurePrivateFolder(folder)
  await readBackup(folder)
  const projects: BackedUpProject[] = []
  for (const project of await listProjects(server, options.signal))
    projects.push(await backUpProject(server, folder, project, options))
  const { accessFolder } = options
  if (accessFolder !== undefined) await copyAccessFiles(accessFolder, join(folder, ACCESS_FOLDER))
  const content: BackupContent = {
    format: 'stowage-backup',
    version: BACKUP_VERSION,
    takenAt,
    hasAccess: accessFolder !== undefined,
    projects,
  }
  await writeFileDurably(folder, BACKUP_FILE, `${JSON.stringify(content, null, 2)}\n`, { replace: true })
  await removeOthers(folder, content)
  return content
}

async function backUpProject(
  server: ClientOptions,
  folder: string,
  projectId: string,
  { signal, accessFolder, isFull = false, onProgress }: BackupOptions,
): Promise<BackedUpProject> {
  const name = join(PROJECTS_FOLDER, createHash('sha256').update(projectId).digest('hex'))
  await ensurePrivateFolder(join(folder, name))
  const chain = await readChain(join(folder, name))
  const { links } = chain
  const exported = async (base: Link | undefined): Promise<string> => {
    const file = `${String(chain.last + 1).padStart(NUMBER_DIGITS, '0')}.tar`
    await exportToFile({ ...server, projectId }, join(folder, name, file), {
      hasSealedSecrets: accessFolder !== undefined,
      ...(signal === undefined ? {} : { signal }),
      ...(base === undefined ? {} : { since: base }),
      onProgress: (progress) => onProgress?.({ ...progress, project: projectId }),
    })
    return file
  }
  const base = isFull ? undefined : links.at(-1)
  const filesOf = (names: readonly string[]): BackedUpProject => ({
    project: projectId,
    files: names.map((file) => join(name, file)),
  })
  try {
    const file = await exported(base)
    if (base !== undefined && (await addsNothing(join(folder, name, file), base))) {
      await rm(join(folder, name, file))
      return filesOf(links.map((link) => link.name))
    }
    return filesOf([...(base === undefined ? [] : links.map((link) => link.name)), file])
  } catch (error) {
    // The project was removed and created again since.
    if (base === undefined || !(error instanceof ClientError) || error.code !== 'conflict') throw error
    return filesOf([await exported(undefined)])
  }
}

/** The last full archive in a folder with those that continue it, whether or not a backup was finished with them. */
async function readChain(folder: string): Promise<{ readonly links: readonly Link[]; readonly last: number }> {
  let links: Link[] = []
  let last = 0
  for (const name of (await readdir(folder)).filter((one) => ARCHIVE.test(one)).sort()) {
    last = Number.parseInt(name, 10)
    const archive = await ArchiveReader.open(join(folder, name))
    try {
      const [manifest, { base, cursor, runsListedAt }] = [await archive.manifest(), await archive.source()]
      const link = { name, manifest, sha256: manifest.sha256, cursor, runsListedAt }
      if (base === null) links = [link]
      else if (base === links.at(-1)?.sha256) links.push(link)
    } finally {
      await archive.close()
    }
  }
  return { links, last }
}

/** Whether it has no objects, and the same records as the one before. */
async function addsNothing(path: string, before: Link): Promise<boolean> {
  const archive = await ArchiveReader.open(path)
  try {
    const manifest = await archive.manifest()
    return manifest.objects === 0 && recordsOf(manifest) === recordsOf(before.manifest)
  } finally {
    await archive.close()
  }
}

function recordsOf({ parts }: Manifest): string {
  return parts
    .filter(({ objects }) => objects === undefined)
    .map(({ sha256 }) => sha256)
    .join()
}

/** Removes archives that the backup does not name any more. */
async function removeOthers(folder: string, { projects }: BackupContent): Promise<void> {
  const named = new Set(projects.flatMap(({ files }) => files))
  for (const project of await readdir(join(folder, PROJECTS_FOLDER)).catch(() => []))
    for (const name of await readdir(join(folder, PROJECTS_FOLDER, project)))
      if (!named.has(join(PROJECTS_FOLDER, project, name)))
        await rm(join(folder, PROJECTS_FOLDER, project, name), { force: true })
}
