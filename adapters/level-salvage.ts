import { mkdir, readdir, readFile, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Level } from 'level'
import { makeFolder } from '../src/storage/durable-files.ts'
import { whyDamagedTable } from './level-table-file.ts'
import { type DamagedFile, damagedFiles } from './level-verify.ts'

/** Where files go that are no good any more, below the data folder: nothing is deleted. */
const DAMAGED_FOLDER = 'damaged'

/** What it has in Node, but its common type does not tell. */
const NodeLevel = Level as unknown as { repair(path: string): Promise<void> }

const NOT_OPENED_BY = /^(?:LOCK|LOG(?:\.old)?|closed)$/

/**
 * Makes a database that can be opened of one that is damaged, of what is left of it: damaged tables are set aside, each with its 2 MB of records, and the
 * rest is put together anew. `tell` hears what was done; where nothing is damaged, nothing is. The answer says whether there is a database now.
 */
export async function salvageDatabase(path: string, tell: (what: string) => void): Promise<boolean> {
  await mkdir(path, { recursive: true })
  const damaged: DamagedFile[] = []
  for await (const file of damagedFiles(path)) damaged.push(file)
  if (damaged.length === 0) return true
  const isUnlisted = damaged.some(({ name }) => !/\.(?:ldb|sst|log)$/.test(name))
  for (const { name, why } of [...damaged, ...(isUnlisted ? await damagedTables(path) : [])]) {
    // Of a log, what can be read is of use.
    const fate = name.endsWith('.log') ? 'what can be read of it is kept' : await setAside(path, name)
    tell(`${join(basename(path), name)} is damaged: ${why}; ${fate}`)
  }
  const rest = (await readdir(path)).filter((name) => !NOT_OPENED_BY.test(name))
  if (rest.length === 0) return false
  await NodeLevel.repair(path)
  return true
}

/** When nobody knows which tables count, all do that are whole. */
async function damagedTables(path: string): Promise<DamagedFile[]> {
  const damaged: DamagedFile[] = []
  for (const name of (await readdir(path)).filter((found) => /\.(?:ldb|sst)$/.test(found))) {
    const table = await readFile(join(path, name))
    const why = whyDamagedTable(table, table.length)
    if (why !== undefined) damaged.push({ name, why })
  }
  return damaged
}

async function setAside(path: string, name: string): Promise<string> {
  const kept = join(DAMAGED_FOLDER, `${basename(path)}-${name}`)
  await makeFolder(join(dirname(path), DAMAGED_FOLDER))
  try {
    await rename(join(path, name), join(dirname(path), kept))
    return `it was set aside as ${kept}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'there is nothing to set aside'
    throw error
  }
}
