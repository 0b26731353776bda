import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createExclusively, ensurePrivateFolder, TEMPORARY_PREFIX } from '../data-folder/exclusive-file.ts'

/**
 * Makes `to` hold the same small text files as `from`, readable by their owner alone: keys and tokens of a data folder.
 */
export async function copyAccessFiles(from: string, to: string): Promise<void> {
  await ensurePrivateFolder(to)
  const wanted = new Set<string>()
  for (const entry of await readdir(from, { withFileTypes: true })) {
    if (entry.name.startsWith(TEMPORARY_PREFIX)) continue
    const [source, target] = [join(from, entry.name), join(to, entry.name)]
    wanted.add(entry.name)
    if (entry.isDirectory()) await copyAccessFiles(source, target)
    else await copyFile(source, target)
  }
  // A key or token that was taken back must not come back with a restored folder.
  for (const name of await readdir(to)) if (!wanted.has(name)) await rm(join(to, name), { recursive: true })
}

async function copyFile(source: string, target: string): Promise<void> {
  const text = await readIfThere(source)
  const before = await readIfThere(target)
  if (text === before) return
  if (before !== undefined) await rm(target)
  if (text !== undefined) await createExclusively(target, text)
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
