import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { AutomationExtension } from '../../automation-server/automation.ts'
import { readCommandSchema } from '../../automation-server/runner/executors/command-schema.ts'
import type { CommandFunction } from '../../automation-server/runner/executors/definitions.ts'
import type { IsolationOptions } from '../../automation-server/runner/executors/isolation/command-runner.ts'
import { StowageError } from '../../errors.ts'
import { quoted, quotedPath } from '../../object/id.ts'
import { Semaphore } from '../../async/semaphore.ts'
import { CODE_BYTES_MAX, digestWithImports } from './local-imports.ts'

const JAVASCRIPT = /^\.[cm]?js$/
const TYPESCRIPT = /^\.[cm]?ts$/
const RELEASE_HEX_DIGITS = 12
/** Files that are asked for their schemas at a time: each is a process. */
const FILES_AT_ONCE = 4

interface RegisterOptions extends Pick<CommandFunction, 'env' | 'memoryBytesMax' | 'hasNetwork' | 'readablePaths'> {
  readonly isolation?: IsolationOptions
}

/**
 * Registers each file as a function that runs as a command of this node, in its own process. Its id is the name of the
 * file, its name and description come from its schema, and its release is a digest of the file with the files that it
 * imports by a relative path. Throws `invalid_request`, which names the file; its cause explains the fault.
 */
export async function registerFiles(
  extension: Pick<AutomationExtension, 'register'>,
  files: readonly string[],
  options: RegisterOptions = {},
): Promise<void> {
  const turns = new Semaphore(FILES_AT_ONCE)
  const { signal } = new AbortController()
  const read = await Promise.all(
    files.map((file) => turns.run(signal, () => about(file, () => functionOf(resolve(file), options)))),
  )
  for (const [at, definition] of read.entries()) await about(files[at], async () => extension.register(definition))
}

async function functionOf(path: string, options: RegisterOptions): Promise<CommandFunction> {
  await checkFile(path)
  const code = await read(path, digestWithImports)
  const release = code.digest.slice(0, RELEASE_HEX_DIGITS)
  const { isolation, readablePaths = [], ...limits } = options
  const run = {
    ...limits,
    command: [process.execPath, ...parametersFor(path), path],
    cwd: dirname(path),
    readablePaths: [...readablePaths, ...code.files],
  }
  const { title, description, ...inputs } = await readCommandSchema(run, isolation)
  const id = basename(path, extname(path))
  return {
    ...run,
    id,
    name: typeof title === 'string' && title.trim() !== '' ? title : id,
    inputs,
    release,
    ...(typeof description === 'string' ? { description } : {}),
  }
}

/**
 * Throws clear errors for cases in which node would print a stack or nothing: it waits forever for a pipe, and takes
 * unknown types for JavaScript.
 */
async function checkFile(path: string): Promise<void> {
  const [found, ending] = [await read(path, stat), extname(path)]
  if (found.isDirectory())
    throw new Error(`this is a folder; name the file in it that ends with executeFunction (${quotedPath(path)})`)
  if (!found.isFile())
    throw new Error(
      `this is a pipe or a device, not a file; name a file that ends with executeFunction (${quotedPath(path)})`,
    )
  if (!JAVASCRIPT.test(ending) && !TYPESCRIPT.test(ending)) {
    throw new Error(
      `its name ends with ${ending === '' ? 'no extension' : quoted(ending)}; it must be a file of JavaScript (.js, .mjs, .cjs) or TypeScript (.ts, .mts, .cts)`,
    )
  }
  if (found.size > CODE_BYTES_MAX)
    throw new Error(`the file has ${found.size} bytes; it must have ${CODE_BYTES_MAX} (64 MB) at most`)
}

function read<T>(path: string, how: (path: string) => Promise<T>): Promise<T> {
  return how(path).catch(({ code = 'UNKNOWN', path: at = path }: NodeJS.ErrnoException) => {
    const isGone = code === 'ENOENT' || code === 'ENOTDIR'
    throw new Error(
      isGone
        ? `there is no such file; give the path of a file that ends with executeFunction (${quotedPath(at)})`
        : `${quotedPath(at)} cannot be read: ${code}`,
    )
  })
}

/**
 * The parameters that node needs to run the file: for TypeScript `tsx`, if it is installed beside the file, and none on
 * nodes that support TypeScript.
 */
function parametersFor(path: string): readonly string[] {
  if (!TYPESCRIPT.test(extname(path))) return []
  try {
    return ['--import', pathToFileURL(createRequire(path).resolve('tsx')).href]
  } catch {
    if ((process.features as { readonly typescript?: unknown }).typescript) return []
    throw new Error(
      `node ${process.version} does not run TypeScript; compile the file, install tsx beside it, or take node 22.18 or later`,
    )
  }
}

async function about<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new StowageError('invalid_request', `--function ${file}`, { cause })
  }
}
