import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AutomationExtension } from '../automation-server/automation.ts'
import { readCommandSchema } from '../automation-server/executors/command-schema.ts'
import type { CommandFunction } from '../automation-server/executors/definitions.ts'
import { StowageError } from '../errors.ts'

const TYPESCRIPT = /^\.[cm]?ts$/
const RELEASE_HEX_DIGITS = 12

/**
 * Registers each file as a function that runs as a command of this node, in a process of its own. Its id is the name of the file, its name and description are
 * those of its schema, and its release is a digest of the file. Throws `invalid_request`, which names the file; its cause says what is wrong with it.
 */
export async function registerFiles(extension: Pick<AutomationExtension, 'register'>, files: readonly string[]): Promise<void> {
  const read = await Promise.all(files.map((file) => about(file, () => functionOf(resolve(file)))))
  for (const [at, definition] of read.entries()) await about(files[at], async () => extension.register(definition))
}

async function functionOf(path: string): Promise<CommandFunction> {
  const code = await readFile(path)
  const run = { command: [process.execPath, ...parametersFor(path), path], cwd: dirname(path) }
  const { title, description, ...inputs } = await readCommandSchema(run)
  const id = basename(path, extname(path))
  return {
    ...run, id, name: typeof title === 'string' && title.trim() !== '' ? title : id, inputs, release: createHash('sha256').update(code).digest('hex').slice(0, RELEASE_HEX_DIGITS),
    ...(typeof description === 'string' ? { description } : {}),
  }
}

/** What node needs to run the file: TypeScript with `tsx`, where that is installed beside it, and on nodes that know TypeScript nothing. */
function parametersFor(path: string): readonly string[] {
  if (!TYPESCRIPT.test(extname(path))) return []
  try {
    return ['--import', pathToFileURL(createRequire(path).resolve('tsx')).href]
  } catch {
    if ((process.features as { readonly typescript?: unknown }).typescript) return []
    throw new Error(`node ${process.version} does not run TypeScript; compile the file, install tsx beside it, or take node 22.18 or later`)
  }
}

async function about<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new StowageError('invalid_request', `--function ${file}`, { cause })
  }
}
