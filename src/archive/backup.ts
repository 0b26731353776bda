import { createHash } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientOptions } from '../client/client.ts'
import { ClientError } from '../client/common/errors.ts'
import { writeFileDurably } from '../data-folder/durable-files.ts'
import { ensurePrivateFolder } from '../data-folder/exclusive-file.ts'
import { StowageError } from '../errors.ts'
import { quotedPath } from '../object/id.ts'
import { copyAccessFiles } from './access-copy.ts'
import { addsNothing, type ChainLink, readChain } from './backup-chain.ts'
import {
  ACCESS_FOLDER,
  type BackedUpProject,
  BACKUP_FILE,
  BACKUP_VERSION,
  type BackupContent,
  PROJECTS_FOLDER,
  readBackup,
  type ReplacedArchives,
} from './backup-format.ts'
import { type ExportProgress, exportToFile } from './export-file.ts'
import { type ListedStore, listStore } from './list-projects.ts'
import { oneAtATime } from './one-at-a-time.ts'

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
  /** Removes the archives of projects that the server does not list, and those of earlier histories. */
  readonly prunes?: boolean
  /** Called as the archives grow. */
  readonly onProgress?: (progress: ExportProgress & { readonly project: string }) => void
}

/**
 * Backs up every project that the token may read, and the keys and tokens of the server, into a folder. The server
 * continues. Everything that was acknowledged before is in the backup. A backup that broke off continues when it is
 * started again; later ones add new data. Archives of projects that the server does not list stay, and so do those of a
 * history that it does not have any more, until a backup that prunes. Throws `conflict` for the folder of another
 * storage, and while another process backs up into the folder.
 */
export async function backupServer(
  server: ClientOptions,
  folder: string,
  options: BackupOptions = {},
): Promise<BackupContent> {
  await ensurePrivateFolder(folder)
  return oneAtATime(join(folder, 'backup'), `the backup ${quotedPath(folder)}`, () => backUp(server, folder, options))
}

async function backUp(server: ClientOptions, folder: string, options: BackupOptions): Promise<BackupContent> {
  const takenAt = new Date().toISOString()
  const before = await readBackup(folder)
  const listed = await listStore(server, options.signal)
  const storeId = checkStore(server, folder, before, listed)
  const made: BackedUpProject[] = []
  for (const projectId of listed.projects) {
    const project = await backUpProject(server, folder, projectId, options)
    if (project !== undefined) made.push(project)
  }
  const { accessFolder, prunes = false } = options
  if (accessFolder !== undefined) await copyAccessFiles(accessFolder, join(folder, ACCESS_FOLDER))
  const content: BackupContent = {
    format: 'stowage-backup',
    version: BACKUP_VERSION,
    storeId,
    takenAt,
    hasAccess: accessFolder !== undefined,
    projects: [...made, ...(prunes ? [] : missingOf(before, made, takenAt))],
    replaced: prunes ? [] : replacedOf(before, made, { takenAt, isFull: options.isFull === true }),
  }
  await writeFileDurably(folder, BACKUP_FILE, `${JSON.stringify(content, null, 2)}\n`, { replace: true })
  await removeOthers(folder, content, prunes ? undefined : new Set(listed.projects.map(chainFolder)))
  return content
}

/** The id of the server's storage, if the folder is its backup or new. */
function checkStore(
  { url }: ClientOptions,
  folder: string,
  before: BackupContent | undefined,
  { storeId }: ListedStore,
): string {
  if (storeId === undefined)
    throw new ClientError('invalid_answer', `the server at ${String(url)} does not tell the id of its storage`)
  if (before === undefined || before.storeId === storeId) return storeId
  throw new StowageError(
    'conflict',
    `${quotedPath(folder)} is the backup of another storage (${before.storeId}) than that of the server (${storeId}): name another folder. If the server takes the place of a lost one, restore the backup into its data folder first`,
  )
}

/** `undefined` if the project was removed meanwhile. */
async function backUpProject(
  server: ClientOptions,
  folder: string,
  projectId: string,
  { signal, accessFolder, isFull = false, onProgress }: BackupOptions,
): Promise<BackedUpProject | undefined> {
  const name = chainFolder(projectId)
  await ensurePrivateFolder(join(folder, name))
  const { links, nextName } = await readChain(join(folder, name))
  const path = join(folder, name, nextName)
  const exportSince = (base: ChainLink | undefined): Promise<unknown> =>
    exportToFile({ ...server, projectId }, path, {
      hasSealedSecrets: accessFolder !== undefined,
      ...(signal === undefined ? {} : { signal }),
      ...(base === undefined ? {} : { since: base }),
      onProgress: (progress) => onProgress?.({ ...progress, project: projectId }),
    })
  const chainOf = (names: readonly string[]): BackedUpProject => ({
    project: projectId,
    files: names.map((file) => join(name, file)),
  })
  const base = isFull ? undefined : links.at(-1)
  try {
    await exportSince(base)
  } catch (error) {
    if (isError(error, 'not_found')) return undefined
    // The server was restored or got older data back, or the project was removed and created again.
    if (base === undefined || !isError(error, 'conflict')) throw error
    await exportSince(undefined)
    return chainOf([nextName])
  }
  if (base === undefined) return chainOf([nextName])
  const names = links.map((link) => link.name)
  if (!(await addsNothing(path, base))) return chainOf([...names, nextName])
  await rm(path)
  return chainOf(names)
}

function chainFolder(projectId: string): string {
  return join(PROJECTS_FOLDER, createHash('sha256').update(projectId).digest('hex'))
}

function isError(error: unknown, code: StowageError['code']): boolean {
  return error instanceof StowageError && error.code === code
}

/** The projects of the backup before that the server did not list now. */
function missingOf(
  before: BackupContent | undefined,
  made: readonly BackedUpProject[],
  takenAt: string,
): readonly BackedUpProject[] {
  const now = new Set(made.map(({ project }) => project))
  const missing = before?.projects.filter(({ project }) => !now.has(project)) ?? []
  return missing.map((project) => ({ missingSince: takenAt, ...project }))
}

/** The chains of the backup before that its projects do not continue. */
function replacedOf(
  before: BackupContent | undefined,
  made: readonly BackedUpProject[],
  { takenAt, isFull }: { readonly takenAt: string; readonly isFull: boolean },
): readonly ReplacedArchives[] {
  const files = new Set(made.flatMap((project) => project.files))
  const now = new Set(made.map(({ project }) => project))
  const left = isFull ? [] : (before?.projects.filter((one) => now.has(one.project) && !files.has(one.files[0])) ?? [])
  return [
    ...(before?.replaced ?? []),
    ...left.map(({ project, files: replaced }) => ({ project, files: replaced, replacedAt: takenAt })),
  ]
}

/** Removes archives that the backup does not name any more, from these folders, or from all. */
async function removeOthers(
  folder: string,
  { projects, replaced }: BackupContent,
  chains: ReadonlySet<string> | undefined,
): Promise<void> {
  const named = new Set([...projects, ...replaced].flatMap(({ files }) => files))
  for (const project of await readdir(join(folder, PROJECTS_FOLDER)).catch(() => [])) {
    const chain = join(PROJECTS_FOLDER, project)
    if (chains !== undefined && !chains.has(chain)) continue
    const names = await readdir(join(folder, chain))
    const others = names.filter((name) => !named.has(join(chain, name)))
    if (others.length === names.length) await rm(join(folder, chain), { recursive: true })
    else for (const name of others) await rm(join(folder, chain, name), { force: true })
  }
}
