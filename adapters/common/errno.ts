const ERRNO_OF_TEXT: Readonly<Record<string, string>> = {
  'no space left on device': 'ENOSPC',
  'disk quota exceeded': 'EDQUOT',
  'too many open files': 'EMFILE',
  'read-only file system': 'EROFS',
}

/** LevelDB puts the system's reason only into its message; callers want the `code` that all other errors have. */
export function withErrno(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const said = `${error.message} ${error.cause instanceof Error ? error.cause.message : ''}`.toLowerCase()
  const code = Object.entries(ERRNO_OF_TEXT).find(([text]) => said.includes(text))?.[1]
  return code === undefined ? error : Object.assign(new Error(error.message, { cause: error }), { code })
}

export async function passErrno<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw withErrno(error)
  }
}

/** Nothing was written: the file could not even be opened. */
export function isTooManyFiles(error: unknown): boolean {
  return hasErrno(error, ['EMFILE', 'ENFILE'])
}

export function isDiskFull(error: unknown): boolean {
  return hasErrno(error, ['ENOSPC', 'EDQUOT'])
}

function hasErrno(error: unknown, codes: readonly string[]): boolean {
  return error instanceof Error && codes.includes((error as NodeJS.ErrnoException).code ?? '')
}
