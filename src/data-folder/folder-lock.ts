import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { incarnationOf, isRunning, parsedHolder, type ProcessHolder, thisProcess } from './process-holder.ts'

/**
 * The lock file of a data folder names the process that holds it. The lock of the database inside is the one that
 * really keeps a second process out. This file names the holder, and lets a second process stop before it has touched
 * anything.
 */
export const LOCK_FILE = 'stowage.lock'

/**
 * The process that holds the data folder at `path`; `undefined` if none does. Lock files of processes that are gone do
 * not count. If the system does not report the start time of a process (other than Linux), a later process with the
 * same pid is taken for the holder.
 */
export async function folderHolder(path: string): Promise<ProcessHolder | undefined> {
  const holder = await readLockFile(path)
  return holder !== undefined && (await isRunning(holder)) ? holder : undefined
}

/** The contents of the lock file, whether they are still true or not. */
export async function readLockFile(path: string): Promise<ProcessHolder | undefined> {
  return parsedHolder(await readFile(join(path, LOCK_FILE), 'utf8').catch(() => ''))
}

/**
 * True if the lock file alone is proof: this very process is alive. Otherwise only the lock of the database can tell.
 */
export async function isHeldByThisProcess(holder: ProcessHolder): Promise<boolean> {
  return holder.incarnation !== '' && holder.incarnation === (await incarnationOf(holder.pid))
}

export async function writeLockFile(path: string): Promise<void> {
  await writeFile(join(path, LOCK_FILE), `${JSON.stringify(await thisProcess())}\n`)
}

export async function removeLockFile(path: string): Promise<void> {
  await rm(join(path, LOCK_FILE), { force: true })
}
