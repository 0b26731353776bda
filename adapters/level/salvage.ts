import { readdir, readFile, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Level } from 'level'
import { makeFolder, OWNER_ONLY } from '../../src/data-folder/durable-files.ts'
import { forgetLengths, readIfExists } from './recorded-lengths.ts'
import { tableDamage } from './table-file.ts'
import { type DamagedFile, damagedFiles } from './verify.ts'

/** The folder for damaged files, below the data folder: nothing is deleted. */
const DAMAGED_FOLDER = 'damaged'

/** Methods that it has in Node, but its common type omits. */
const NodeLevel = Level as unknown as { repair(path: string): Promise<void> }

const NOT_OPENED_BY = /^(?:LOCK|LOG(?:\.old)?|lengths)$/

/**
 * Makes a database that can be opened from the rest of a damaged one: damaged tables are set aside, each with its 2 MB
 * of records, and the rest is put together anew. `tell` receives the steps; without damage there are none. Returns
 * whether there is a database now.
 */
export async function salvageDatabase(path: string, tell: (what: string) => void): Promise<boolean> {
  await makeFolder(path, OWNER_ONLY)
  const damaged = new Map<string, string>()
  for await (const { name, what } of damagedFiles(path)) damaged.set(name, what)
  if (damaged.size === 0) return true
  // A repair takes every table that it finds, those included that the manifest does not name.
  for (const { name, what } of await damagedTables(path)) damaged.set(name, what)
  for (const [name, what] of damaged) tell(`${join(basename(path), name)} ${what}${await fateOf(path, name)}`)
  const rest = (await readdir(path)).filter((name) => !NOT_OPENED_BY.test(name))
  if (rest.length > 0) await NodeLevel.repair(path)
  await forgetLengths(path)
  return rest.length > 0
}

async function damagedTables(path: string): Promise<DamagedFile[]> {
  const damaged: DamagedFile[] = []
  for (const name of (await readdir(path)).filter((found) => /\.(?:ldb|sst)$/.test(found))) {
    const table = await readFile(join(path, name))
    const why = tableDamage(table, table.length)
    if (why !== undefined) damaged.push({ name, what: `is damaged: ${why}` })
  }
  return damaged
}

async function fateOf(path: string, name: string): Promise<string> {
  // The readable part of a log is of use.
  if (name.endsWith('.log')) return (await readIfExists(join(path, name))) ? '; what can be read of it is kept' : ''
  const kept = join(DAMAGED_FOLDER, `${basename(path)}-${name}`)
  await makeFolder(join(dirname(path), DAMAGED_FOLDER), OWNER_ONLY)
  try {
    await rename(join(path, name), join(dirname(path), kept))
    return `; it was set aside as ${kept}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
