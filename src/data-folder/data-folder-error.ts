import { userInfo } from 'node:os'
import type { ProcessHolder } from './process-holder.ts'

export type DataFolderErrorCode =
  | 'FOLDER_HELD'
  | 'FOLDER_KIND'
  | 'FOLDER_FORMAT'
  | 'FOLDER_DAMAGED'
  | 'FOLDER_READ_ONLY'
  | 'FOLDER_DENIED'
  | 'FOLDER_FULL'
  | 'FOLDER_UNUSABLE'
  | 'TOO_MANY_FILES'

/** Why a data folder cannot be opened. What it holds was left as it was. */
export class DataFolderError extends Error {
  override readonly name = 'DataFolderError'
  readonly code: DataFolderErrorCode
  /** The process that holds the folder, if it is known (`FOLDER_HELD`). */
  readonly holder: ProcessHolder | undefined

  constructor(
    code: DataFolderErrorCode,
    message: string,
    options: ErrorOptions & { readonly holder?: ProcessHolder | undefined } = {},
  ) {
    super(message, options)
    this.code = code
    this.holder = options.holder
  }
}

type Words = (folder: string, where: string) => string

const READ_ONLY: Words = (folder, where) =>
  `the data folder ${folder} is on a read-only file system${where}; Stowage writes to it even to read; mount it ` +
  'writable, or copy the folder to a place that is'
const DENIED: Words = (folder, where) =>
  `${userName()} may not use the data folder ${folder}${where}; the user that runs Stowage must own the folder and ` +
  'all that is in it: "chown -R" it to that user, or run as its owner'
const TOO_MANY_FILES: Words = (folder) =>
  `the data folder ${folder} cannot be opened: this process has as many files open as it may; allow it 1,024 or more ` +
  '("ulimit -n", "LimitNOFILE=" of systemd)'
const FULL: Words = (folder) =>
  `the data folder ${folder} cannot be opened: its disk is full; free 16 MB or more, Stowage needs them to write`
const NO_FOLDER: Words = (folder, where) =>
  `the data folder ${folder} cannot be made or opened: something on its path is not a folder${where}`
const NO_LOCKS: Words = (folder) =>
  `the data folder ${folder} is on a file system without locks; put it on a local disk, so that no second process ` +
  'can write to it'

interface Reason {
  readonly code: DataFolderErrorCode
  readonly words: Words
  /** The message of the system, for engines without error codes. */
  readonly systemText: RegExp
}

const REASONS: Readonly<Record<string, Reason>> = {
  EROFS: { code: 'FOLDER_READ_ONLY', words: READ_ONLY, systemText: /read-only file system/i },
  EACCES: { code: 'FOLDER_DENIED', words: DENIED, systemText: /permission denied|access is denied/i },
  EPERM: { code: 'FOLDER_DENIED', words: DENIED, systemText: /operation not permitted/i },
  EMFILE: { code: 'TOO_MANY_FILES', words: TOO_MANY_FILES, systemText: /too many open files/i },
  ENFILE: { code: 'TOO_MANY_FILES', words: TOO_MANY_FILES, systemText: /too many open files in system/i },
  ENOSPC: { code: 'FOLDER_FULL', words: FULL, systemText: /no space left on device/i },
  EDQUOT: { code: 'FOLDER_FULL', words: FULL, systemText: /quota exceeded/i },
  ENOTDIR: { code: 'FOLDER_UNUSABLE', words: NO_FOLDER, systemText: /not a directory/i },
  EEXIST: { code: 'FOLDER_UNUSABLE', words: NO_FOLDER, systemText: /file exists/i },
  ENOLCK: { code: 'FOLDER_UNUSABLE', words: NO_LOCKS, systemText: /no locks available/i },
}

/**
 * Turns an error that occurred while the folder was opened into an error that names the remedy, with the original as
 * its cause. Errors that come from neither the system nor the database pass unchanged.
 */
export function openingError(folder: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof DataFolderError) return error
  const chain = causesOf(error)
  const reason = chain.map(reasonOf).find((found) => found !== undefined)
  if (reason) return new DataFolderError(reason.code, reason.words(folder, placeIn(chain)), { cause: error })
  if (!chain.some(({ code }) => code?.startsWith('LEVEL_'))) return error
  return new DataFolderError(
    'FOLDER_DAMAGED',
    `the database in the data folder ${folder} does not open although all of its files are whole; make a copy of the ` +
      'folder and run "stowage reindex", which rebuilds the database',
    { cause: error },
  )
}

/** Whether the error, or one of its causes, has the code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && causesOf(error).some((at) => at.code === code)
}

function causesOf(error: Error): NodeJS.ErrnoException[] {
  const chain: Error[] = []
  for (let at: unknown = error; at instanceof Error && chain.length < 8; at = at.cause) chain.push(at)
  return chain
}

function reasonOf({ code, message }: NodeJS.ErrnoException): Reason | undefined {
  if (code !== undefined && Object.hasOwn(REASONS, code)) return REASONS[code]
  if (code?.startsWith('LEVEL_') !== true) return undefined
  return Object.values(REASONS).find(({ systemText }) => systemText.test(message))
}

/** The file or folder that the system named. */
function placeIn(chain: readonly NodeJS.ErrnoException[]): string {
  const path = chain.map((at) => at.path ?? /^IO error: (.+?): /.exec(at.message)?.[1]).find((found) => found)
  return path === undefined ? '' : ` (at ${path})`
}

function userName(): string {
  try {
    const { username, uid } = userInfo()
    return uid < 0 ? `the user ${username}` : `the user ${username} (${uid})`
  } catch {
    return `the user ${process.getuid?.() ?? 'of this process'}`
  }
}
