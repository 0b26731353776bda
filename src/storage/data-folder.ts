import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder, writeFileDurably } from './durable-files.ts'
import {
  type FolderHolder,
  folderHolder,
  isProvenHolder,
  readLockFile,
  removeLockFile,
  writeLockFile,
} from './folder-lock.ts'

/** Says which storage and format a data folder holds. Its absence, or an unexpected byte in it, means hands off. */
export const MARKER_FILE = 'stowage.json'
const FORMAT = 1

export type FolderKind = 'filesystem' | 'level'

/** `creating` until the databases exist: only then may they be made, because nothing can have been acknowledged. */
type FolderState = 'absent' | 'creating' | 'ready'

export type DataFolderErrorCode = 'FOLDER_HELD' | 'FOLDER_KIND' | 'FOLDER_FORMAT' | 'FOLDER_DAMAGED'

/** Why a data folder cannot be opened. It was left as it was. */
export class DataFolderError extends Error {
  override readonly name = 'DataFolderError'
  readonly code: DataFolderErrorCode
  /** The process that holds the folder, where it is known (`FOLDER_HELD`). */
  readonly holder: FolderHolder | undefined

  constructor(
    code: DataFolderErrorCode,
    message: string,
    options: ErrorOptions & { readonly holder?: FolderHolder | undefined } = {},
  ) {
    super(message, options)
    this.code = code
    this.holder = options.holder
  }
}

export interface FolderPlan<T> {
  readonly path: string
  readonly kind: FolderKind
  /** Sub-folders that are LevelDB databases. */
  readonly databases: readonly string[]
  /** Sub-folders of plain files. */
  readonly folders: readonly string[]
  /** `open` makes do with databases and folders of which something is missing. */
  readonly mayBeIncomplete?: boolean
  /** Opens the databases, and so takes their locks. Throws an error with the code `LEVEL_LOCKED` below it when another process has them. */
  open(options: { readonly createIfMissing: boolean }): Promise<T>
  close(opened: T): Promise<void>
}

export interface OpenFolder<T> {
  readonly content: T
  close(): Promise<void>
}

/**
 * Opens a data folder, or makes it when there is none. Throws `DataFolderError` when another process holds it, when it holds another kind of storage or a
 * newer format, and when something that must be there is missing.
 */
export async function openDataFolder<T>(plan: FolderPlan<T>): Promise<OpenFolder<T>> {
  await refuseHeld(plan)
  const state = await startCreating(plan, await readState(plan))
  if (state === 'ready' && plan.mayBeIncomplete !== true) await refuseIncomplete(plan)
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
 * Where the lock file is proof, a second process turns back here, before LevelDB has rotated its log of messages. Who would put a database together anew
 * turns back without proof too.
 */
async function refuseHeld<T>({ path, mayBeIncomplete }: FolderPlan<T>): Promise<void> {
  const holder = await folderHolder(path)
  if (holder && (mayBeIncomplete === true || (await isProvenHolder(holder)))) throw heldError(path, holder)
}

function heldError(path: string, holder: FolderHolder | undefined, cause?: unknown): DataFolderError {
  const who = holder ? `process ${holder.pid} on ${holder.host} (since ${holder.openedAt})` : 'another process'
  return new DataFolderError(
    'FOLDER_HELD',
    `the data folder ${path} is in use by ${who}; one process may hold it at a time`,
    { holder, cause },
  )
}

async function readState<T>({ path, kind }: FolderPlan<T>): Promise<FolderState> {
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

function markerText(storage: FolderKind, state: FolderState): string {
  return `${JSON.stringify({ storage, format: FORMAT, state })}\n`
}

async function writeMarker<T>({ path, kind }: FolderPlan<T>, state: FolderState): Promise<void> {
  await writeFileDurably(path, MARKER_FILE, markerText(kind, state), { replace: state === 'ready' })
}

function markerError(path: string, kind: FolderKind, text: string): DataFolderError {
  const { storage, format } = parsedMarker(text)
  if ((storage === 'filesystem' || storage === 'level') && storage !== kind) {
    return new DataFolderError(
      'FOLDER_KIND',
      `the data folder ${path} holds storage of the kind ${storage}; it cannot be opened as ${kind}`,
    )
  }
  if (storage === kind && typeof format === 'number' && format > FORMAT) {
    return new DataFolderError(
      'FOLDER_FORMAT',
      `the data folder ${path} has format ${format}; this version knows formats up to ${FORMAT}`,
    )
  }
  return new DataFolderError(
    'FOLDER_DAMAGED',
    `${MARKER_FILE} in the data folder ${path} is damaged; it must hold exactly ${markerText(kind, 'ready').trim()}`,
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

async function startCreating<T>(plan: FolderPlan<T>, state: FolderState): Promise<FolderState> {
  if (state !== 'absent') return state
  for (const name of [...plan.databases, ...plan.folders]) {
    if (await exists(join(plan.path, name))) {
      throw new DataFolderError(
        'FOLDER_DAMAGED',
        `the data folder ${plan.path} holds ${name} but ${MARKER_FILE} is missing; nothing is opened that may be erased`,
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
    if (createIfMissing || plan.mayBeIncomplete === true)
      for (const name of plan.folders) await makeFolder(join(plan.path, name))
    return await plan.open({ createIfMissing })
  } catch (error) {
    if (!hasCode(error, 'LEVEL_LOCKED')) throw error
    throw heldError(plan.path, await readLockFile(plan.path), error)
  }
}

function hasCode(error: unknown, code: string): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ((at as NodeJS.ErrnoException).code === code) return true
  }
  return false
}

/** LevelDB erases a database without `CURRENT`, and forgets without a word what stood in a log that is gone. */
async function refuseIncomplete<T>(plan: FolderPlan<T>): Promise<void> {
  for (const name of plan.folders) {
    if (!(await exists(join(plan.path, name)))) throw missingError(plan.path, name)
  }
  for (const name of plan.databases) {
    const folder = join(plan.path, name)
    const current = await readFile(join(folder, 'CURRENT'), 'latin1').catch(() => undefined)
    if (current === undefined) throw missingError(plan.path, join(name, 'CURRENT'))
    const manifest = current.trim()
    if (!/^MANIFEST-\d+$/.test(manifest))
      throw new DataFolderError('FOLDER_DAMAGED', `${join(name, 'CURRENT')} in ${plan.path} is damaged`)
    if (!(await exists(join(folder, manifest)))) throw missingError(plan.path, join(name, manifest))
    if (!(await readdir(folder)).some((file) => file.endsWith('.log')))
      throw missingError(plan.path, join(name, '*.log'))
  }
}

function missingError(path: string, name: string): DataFolderError {
  return new DataFolderError(
    'FOLDER_DAMAGED',
    `${name} is missing in the data folder ${path}; restore it from a copy, the rest was left as it was`,
  )
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
