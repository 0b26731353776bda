import { randomBytes } from 'node:crypto'
import { link, open, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { makeFolder, OWNER_ONLY, syncFolder } from './durable-files.ts'

const OWNER_READS_AND_WRITES = 0o600

/** The prefix of temporary files, so that a listing of a folder can omit what a crash left behind. */
export const TEMPORARY_PREFIX = '.tmp-'

/** Only the owner may read the new folders, which are durable; existing folders keep their mode. */
export async function ensurePrivateFolder(path: string): Promise<void> {
  await makeFolder(path, OWNER_ONLY)
}

/**
 * A small file that appears whole or not at all, durable, readable by its owner alone. Of several processes that create
 * one name at a time, one gets `true`; the others get `false` and find that one's content.
 */
export async function createExclusively(path: string, content: string): Promise<boolean> {
  const folder = dirname(path)
  const temporary = join(folder, `${TEMPORARY_PREFIX}${basename(path)}-${randomBytes(8).toString('hex')}`)
  await writeDurably(temporary, content)
  try {
    await link(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    await unlink(temporary)
  }
  await syncFolder(folder)
  return true
}

async function writeDurably(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', OWNER_READS_AND_WRITES)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}
