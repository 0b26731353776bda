import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'stowage-run-'
const NAME = /^stowage-run-(\d{1,10})-/
/**
 * A folder without its process may be one whose process is not seen from here, and just begins: after this time a
 * function has read its file.
 */
const STALE_MS = 60_000
const REMOVE_TRIES = 3

/**
 * Runs `use` with a folder of mode 0700, named after this process, which is gone afterwards with all that is in it.
 * What a function made so that it cannot be removed stays until the next `removeStaleFolders`, and harms no run.
 */
export async function withPrivateFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`))
  try {
    return await use(path)
  } finally {
    await rm(path, { recursive: true, force: true, maxRetries: REMOVE_TRIES }).catch(ifOfFileSystem)
  }
}

/**
 * Removes the leftovers of this user's killed processes: run files hold tokens and secrets. Folders that cannot be
 * removed stay.
 */
export async function removeStaleFolders(): Promise<void> {
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    const pid = NAME.exec(name)?.[1]
    if (pid !== undefined) await removeIfStale(join(tmpdir(), name), Number(pid)).catch(ifOfFileSystem)
  }
}

/** In a container each server has the same pid: a folder older than this process is not its own. */
async function removeIfStale(path: string, pid: number): Promise<void> {
  const { mtimeMs, uid } = await stat(path)
  const beforeMs = Date.now() - (pid === process.pid ? process.uptime() * 1_000 : 0) - STALE_MS
  const isHeld = pid !== process.pid && isAlive(pid)
  if (!isHeld && uid === (process.getuid?.() ?? uid) && mtimeMs < beforeMs)
    await rm(path, { recursive: true, force: true })
}

function ifOfFileSystem(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code === undefined) throw error
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
