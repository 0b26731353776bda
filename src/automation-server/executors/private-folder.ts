import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PREFIX = 'stowage-run-'
const NAME = /^stowage-run-(\d{1,10})-/
/** A folder without its process may be one whose process is not seen from here, and just begins: after this time a function has read its file. */
const STALE_MS = 60_000
const REMOVE_TRIES = 3

/** Runs `use` with a folder of mode 0700, named after this process, which is gone afterwards with all that is in it. */
export async function withPrivateFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
  const path = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`))
  try {
    return await use(path)
  } finally {
    await rm(path, { recursive: true, force: true, maxRetries: REMOVE_TRIES })
  }
}

/** Removes what processes of this user left that were killed: run files hold tokens and secrets. What cannot be removed stays. */
export async function removeStaleFolders(): Promise<void> {
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    const pid = Number(NAME.exec(name)?.[1] ?? process.pid)
    if (pid === process.pid || isAlive(pid)) continue
    const path = join(tmpdir(), name)
    try {
      const { mtimeMs, uid } = await stat(path)
      if (uid === (process.getuid?.() ?? uid) && Date.now() - mtimeMs > STALE_MS) await rm(path, { recursive: true, force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
