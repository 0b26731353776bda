import { randomUUID } from 'node:crypto'
import { chmod, link, mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/**
 * Makes names that were added to or removed from a folder survive a loss of power. Windows cannot sync folders, and
 * does not need to.
 */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The mode of folders that hold data: only their owner may read them. */
export const OWNER_ONLY = 0o700

const OTHERS = 0o077
/** The folder belongs to another user, or its file system has no modes: then its mode stays. */
const MODE_STAYS: ReadonlySet<string | undefined> = new Set(['EPERM', 'EROFS', 'ENOTSUP', 'ENOSYS'])

/** Removes the rights of everybody but the owner from an existing folder, if its mode is ours to change. */
export async function restrictToOwner(path: string): Promise<void> {
  if (process.platform === 'win32' || ((await stat(path)).mode & OTHERS) === 0) return
  await chmod(path, OWNER_ONLY).catch((error: NodeJS.ErrnoException) => {
    if (!MODE_STAYS.has(error.code)) throw error
  })
}

/** Creates a folder with all its parents; it is durable when the promise resolves. New folders get the mode. */
export async function makeFolder(path: string, mode: number = 0o777): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode })
  if (first === undefined) return
  for (let made = resolve(path); made.length >= resolve(first).length; made = dirname(made))
    await syncFolder(dirname(made))
}

/** The end of the names of files that are being written. */
export const TEMPORARY_SUFFIX = '.tmp'

/**
 * Writes a small file whole or not at all. `replace` decides whether an existing file is replaced or is an error
 * (`EEXIST`).
 */
export async function writeFileDurably(
  folder: string,
  name: string,
  text: string,
  { replace }: { readonly replace: boolean },
): Promise<void> {
  // A pid would not do: two machines that share the folder may have the same one.
  const temporary = join(folder, `${name}.${randomUUID()}${TEMPORARY_SUFFIX}`)
  try {
    const handle = await open(temporary, 'w')
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await (replace ? rename : link)(temporary, join(folder, name))
  } finally {
    await rm(temporary, { force: true })
  }
  await syncFolder(folder)
}
