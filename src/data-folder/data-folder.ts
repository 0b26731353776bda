import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DataFolderError, hasCode, openingError } from './data-folder-error.ts'
import { restrictToOwner, makeFolder, OWNER_ONLY, writeFileDurably } from './durable-files.ts'
import { folderHolder, isHeldByThisProcess, readLockFile, removeLockFile, writeLockFile } from './folder-lock.ts'
import type { ProcessHolder } from './process-holder.ts'

/** Says which storage and format a data folder holds. Its absence, or an unexpected byte in it, means hands off. */
export const MARKER_FILE = 'stowage.json'
const FORMAT = 2

/** Storages with both halves in one folder. */
export type FolderKind = 'filesystem' | 'level'
/** Folders of one half; the other half is somewhere else. */
export type HalfFolderKind = 'filesystem-blobs' | 'level-records'
type AnyFolderKind = FolderKind | HalfFolderKind

const KINDS: ReadonlySet<unknown> = new Set<AnyFolderKind>(['filesystem', 'level', 'filesystem-blobs', 'level-records'])

/** `creating` until the databases exist: only then may they be made, because nothing can have been acknowledged. */
type FolderState = 'absent' | 'creating' | 'ready'

export interface FolderPlan<T> {
  readonly path: string
  readonly kind: AnyFolderKind
  /** Sub-folders that are LevelDB databases. */
  readonly databases: readonly string[]
  /** Sub-folders of plain files. */
  readonly folders: readonly string[]
  /** `open` makes do with databases and folders of which something is missing. */
  readonly mayBeIncomplete?: boolean
  /**
   * Opens the databases, and so takes their locks; refuses those of which something is missing. Throws an error with
   * the code `LEVEL_LOCKED` below it when another process has them.
   */
  open(options: { readonly createIfMissing: boolean }): Promise<T>
  close(opened: T): Promise<void>
}

type FolderNames = Pick<FolderPlan<never>, 'path' | 'kind'>
type FolderContents = Pick<FolderPlan<never>, 'path' | 'kind' | 'databases' | 'folders'>

export interface OpenFolder<T> {
  readonly content: T
  close(): Promise<void>
}

/**
 * Opens a data folder, or makes it when there is none. Throws `DataFolderError` when another process holds it, when it
 * holds another kind of storage or a newer format, when something that must be there is missing, and when the system
 * does not let it be opened.
 */
export async function openDataFolder<T>(plan: FolderPlan<T>): Promise<OpenFolder<T>> {
  try {
    return await openFolder(plan)
  } catch (error) {
    throw openingError(plan.path, error)
  }
}

/**
 * Opens a folder of plain files that several processes and machines may use at once, or makes it when there is none.
 * Nobody holds it, so there is no lock to take. Throws `DataFolderError` as `openDataFolder` does.
 */
export async function openSharedFolder(plan: Omit<FolderContents, 'databases'>): Promise<void> {
  const whole = { ...plan, databases: [] }
  try {
    const state = await startCreating(whole, await readState(whole))
    if (state === 'ready') await refuseMissingFolder(whole)
    await makeFolders(plan)
    if (state !== 'ready') await writeMarker(plan, 'ready')
  } catch (error) {
    throw openingError(plan.path, error)
  }
}

async function openFolder<T>(plan: FolderPlan<T>): Promise<OpenFolder<T>> {
  await refuseHeld(plan)
  const state = await startCreating(plan, await readState(plan))
  if (state === 'ready' && plan.mayBeIncomplete !== true) await refuseMissingFolder(plan)
  const content = await openContent(plan, state !== 'ready')
  try {
    await writeLockFile(plan.path)
    if (state !== 'ready') await writeMarker(plan, 'ready')
  } catch (error) {
    await plan.close(content)
    throw error
  }
  return {
    content,
    close: async () => {
      await removeLockFile(plan.path)
      await plan.close(content)
    },
  }
}

/**
 * If the lock file is proof, a second process stops here, before LevelDB rotates its log of messages. A process that
 * would rebuild a database stops here even without proof.
 */
async function refuseHeld<T>({ path, mayBeIncomplete }: FolderPlan<T>): Promise<void> {
  const holder = await folderHolder(path)
  if (holder && (mayBeIncomplete === true || (await isHeldByThisProcess(holder)))) throw heldError(path, holder)
}

function heldError(path: string, holder: ProcessHolder | undefined, cause?: unknown): DataFolderError {
  const who = holder ? `process ${holder.pid} on ${holder.host} (since ${holder.openedAt})` : 'another process'
  return new DataFolderError(
    'FOLDER_HELD',
    `the data folder ${path} is in use by ${who}; one process may hold it at a time`,
    { holder, cause },
  )
}

async function readState({ path, kind }: FolderNames): Promise<FolderState> {
  const text = await readFile(join(path, MARKER_FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return 'absent'
  for (const state of ['creating', 'ready'] as const) {
    if (text === markerText(kind, state)) return state
  }
  throw markerError(path, kind, text)
}

function markerText(storage: AnyFolderKind, state: FolderState): string {
  return `${JSON.stringify({ storage, format: FORMAT, state })}\n`
}

async function writeMarker({ path, kind }: FolderNames, state: FolderState): Promise<void> {
  await writeFileDurably(path, MARKER_FILE, markerText(kind, state), { replace: state === 'ready' })
}

function markerError(path: string, kind: AnyFolderKind, text: string): DataFolderError {
  const { storage, format } = parsedMarker(text)
  if (KINDS.has(storage) && storage !== kind) {
    return new DataFolderError(
      'FOLDER_KIND',
      `the data folder ${path} holds storage of the kind ${String(storage)}; it cannot be opened as ${kind}`,
    )
  }
  if (storage === kind && typeof format === 'number' && format !== FORMAT) {
    const remedy =
      format > FORMAT
        ? 'use the release that wrote it, or a newer one'
        : 'serve it with the older release that wrote it, export its projects ("stowage export") and import them into ' +
          'a new folder ("stowage import")'
    return new DataFolderError(
      'FOLDER_FORMAT',
      `the data folder ${path} has format ${format}; this release reads format ${FORMAT}; nothing was changed; ${remedy}`,
    )
  }
  return new DataFolderError(
    'FOLDER_DAMAGED',
    `${MARKER_FILE} in the data folder ${path} is damaged; nothing was changed; restore it: it must hold exactly ` +
      `${markerText(kind, 'ready').trim()} and a line end`,
  )
}

function parsedMarker(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text)
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

async function startCreating(plan: FolderContents, state: FolderState): Promise<FolderState> {
  if (state !== 'absent') return state
  for (const name of [...plan.databases, ...plan.folders]) {
    if (await exists(join(plan.path, name))) {
      // Another process may have begun to create it since the marker was looked for.
      const now = await readState(plan)
      if (now !== 'absent') return now
      throw new DataFolderError(
        'FOLDER_DAMAGED',
        `the data folder ${plan.path} holds ${name} but ${MARKER_FILE} is missing; nothing was changed; restore it: ` +
          `it must hold exactly ${markerText(plan.kind, 'ready').trim()} and a line end`,
      )
    }
  }
  await makeFolder(plan.path)
  try {
    await writeMarker(plan, 'creating')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return readState(plan)
  }
  return 'creating'
}

async function openContent<T>(plan: FolderPlan<T>, createIfMissing: boolean): Promise<T> {
  try {
    if (createIfMissing || plan.mayBeIncomplete === true) await makeFolders(plan)
    for (const name of plan.folders) await restrictToOwner(join(plan.path, name))
    return await plan.open({ createIfMissing })
  } catch (error) {
    if (!hasCode(error, 'LEVEL_LOCKED')) throw error
    throw heldError(plan.path, await readLockFile(plan.path), error)
  }
}

async function makeFolders({ path, folders }: Pick<FolderContents, 'path' | 'folders'>): Promise<void> {
  for (const name of folders) await makeFolder(join(path, name), OWNER_ONLY)
}

async function refuseMissingFolder({ path, folders }: FolderContents): Promise<void> {
  for (const name of folders) {
    if (await exists(join(path, name))) continue
    throw new DataFolderError(
      'FOLDER_DAMAGED',
      `in the data folder ${path}, ${name} is missing; nothing was changed; restore it from a backup, or make a copy of ` +
        'the folder and run "stowage reindex", which saves the rest and reports the losses',
    )
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
