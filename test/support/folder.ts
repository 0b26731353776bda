import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

/** Whatever ends: a test, or all tests of a file. */
export interface Ending {
  after(remove: () => void | Promise<void>): void
}

/** Where Linux keeps files in memory: nobody waits for a disk there. */
const MEMORY_DISK = '/dev/shm'
const MEMORY_DISK_FREE_BYTES_MIN = 1_000_000_000

/** An empty folder, which is removed when the test ends; without a test, when all tests of the file have ended. */
export function temporaryFolder(ending: Ending = { after }): string {
  return folderIn(tmpdir(), ending)
}

/** For tests that write and sync the same small files hundreds of times, and are not about the disk. */
export function folderInMemory(ending: Ending = { after }): string {
  return folderIn(hasMemoryDisk() ? MEMORY_DISK : tmpdir(), ending)
}

function folderIn(parent: string, ending: Ending): string {
  const folder = mkdtempSync(join(parent, 'stowage-test-'))
  ending.after(() => remove(folder))
  return folder
}

/**
 * Hooks run in the order in which they were set, and those behind one that throws do not run at all. A server whose hook
 * comes later may write here until then, so that the folder is not empty: it goes when the process ends.
 */
function remove(folder: string): void {
  const work = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    work()
  } catch {
    process.once('exit', work)
  }
}

function hasMemoryDisk(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_DISK)
    return bavail * bsize > MEMORY_DISK_FREE_BYTES_MIN
  } catch {
    return false
  }
}
