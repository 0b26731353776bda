import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The folder of the repository. Compiled files lie one folder deeper than their sources, so a file that exists only
 * here identifies it.
 */
export const REPOSITORY: string = upTo('package-lock.json', import.meta.dirname)

function upTo(name: string, folder: string): string {
  if (existsSync(join(folder, name))) return folder
  if (dirname(folder) === folder) throw new Error(`no folder above ${import.meta.dirname} has a ${name}`)
  return upTo(name, dirname(folder))
}
