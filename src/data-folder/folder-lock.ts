import { readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

/**
 * The lock file of a data folder names the process that holds it. The lock of the database inside is the one that
 * really keeps a second process out. This file names the holder, and lets a second process stop before it has touched
 * anything.
 */
export const LOCK_FILE = 'stowage.lock'

export interface FolderHolder {
  readonly pid: number
  readonly host: string
  /** ISO 8601, when the process opened the folder. */
  readonly openedAt: string
  /** Distinguishes the process from a later one with the same pid; empty if the system offers no such value. */
  readonly incarnation: string
}

/**
 * The process that holds the data folder at `path`; `undefined` if none does. Lock files of processes that are gone do
 * not count. If the system does not report the start time of a process (other than Linux), a later process with the
 * same pid is taken for the holder.
 */
export async function folderHolder(path: string): Promise<FolderHolder | undefined> {
  const holder = await readLockFile(path)
  if (!holder || !isAlive(holder.pid)) return undefined
  if (holder.incarnation === '') return holder
  return holder.incarnation === (await incarnation(holder.pid)) ? holder : undefined
}

/** The contents of the lock file, whether they are still true or not. */
export async function readLockFile(path: string): Promise<FolderHolder | undefined> {
  try {
    const parsed: unknown = JSON.parse(await readFile(join(path, LOCK_FILE), 'utf8'))
    return isHolder(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

/**
 * True if the lock file alone is proof: this very process is alive. Otherwise only the lock of the database can tell.
 */
export async function isHeldByThisProcess(holder: FolderHolder): Promise<boolean> {
  return holder.incarnation !== '' && holder.incarnation === (await incarnation(holder.pid))
}

export async function writeLockFile(path: string): Promise<void> {
  const holder: FolderHolder = {
    pid: process.pid,
    host: hostname(),
    openedAt: new Date().toISOString(),
    incarnation: await incarnation(process.pid),
  }
  await writeFile(join(path, LOCK_FILE), `${JSON.stringify(holder)}\n`)
}

export async function removeLockFile(path: string): Promise<void> {
  await rm(join(path, LOCK_FILE), { force: true })
}

function isHolder(value: unknown): value is FolderHolder {
  if (typeof value !== 'object' || value === null) return false
  const { pid, host, openedAt, incarnation: born } = value as Record<string, unknown>
  return (
    Number.isSafeInteger(pid) &&
    (pid as number) > 0 &&
    [host, openedAt, born].every((field) => typeof field === 'string')
  )
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Boot and start time of a process on Linux (proc(5): `starttime` is the 22nd field of stat, the 20th after the name).
 */
async function incarnation(pid: number): Promise<string> {
  try {
    const [boot, stat] = await Promise.all([
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
    ])
    return `${boot.trim()}/${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return ''
  }
}
