import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type BuildOptions, type Plugin, version } from 'esbuild'

/**
 * Compiles what tests run, once: a loader that transforms sources costs a second in every process. The compiled files
 * mirror the repository's tree in a folder that is kept, and only sources that have changed are compiled again.
 */
const REPOSITORY: string = join(import.meta.dirname, '..')
const COMPILED: string = join(REPOSITORY, '.compiled')

const FOLDERS: readonly string[] = ['adapters', 'bench', 'src', 'test']

/** Type tests have their own compiler; the command's CommonJS file is compiled by the package's build. */
const SKIPPED = /^test\/types\/|\.cts$/

/**
 * The address of a module for another process or thread. Both endings have the same length, so that source maps stay
 * right.
 */
const MODULE_ADDRESS = /(\bnew URL\('[^':]+\.)ts(?=', import\.meta\.url\))/g

const OPTIONS: BuildOptions = {
  absWorkingDir: REPOSITORY,
  outdir: COMPILED,
  outbase: REPOSITORY,
  bundle: true,
  treeShaking: false,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  sourcemap: 'linked',
  sourcesContent: false,
  write: false,
  logLevel: 'warning',
  tsconfigRaw: {
    compilerOptions: { jsx: 'react-jsx', jsxImportSource: 'hono/jsx', target: 'es2023', verbatimModuleSyntax: true },
  },
}

/** A compiled file is fresh if it ends with the key of its source. The key covers this compiler and its options too. */
const COMPILER: string = [version, readFileSync(import.meta.filename, 'utf8')].join('\n')

/** Brings the compiled files up to date. Each is replaced as a whole, so that several runs may do this at a time. */
export async function compile(): Promise<void> {
  const sources = FOLDERS.flatMap(listFiles).filter((path) => !SKIPPED.test(path))
  removeOthers(new Set(sources.flatMap((path) => [compiledPath(path), `${compiledPath(path)}.map`])))
  for (const path of sources.filter((path) => !isTypeScript(path))) replace(path, readFileSync(join(REPOSITORY, path)))
  replace('package.json', Buffer.from(selfImportingPackage()))
  const entryPoints = sources.filter((path) => isTypeScript(path) && !isFresh(path))
  const keys = new Map<string, string>()
  const { outputFiles = [] } = await build({ ...OPTIONS, entryPoints, plugins: [eachFileAlone(keys)] })
  const maps = outputFiles.filter(({ path }) => path.endsWith('.map'))
  for (const { path, contents } of maps) replace(path.slice(COMPILED.length + 1), contents)
  for (const { path, text } of outputFiles.filter((file) => !maps.includes(file))) {
    const compiled = path.slice(COMPILED.length + 1)
    replace(compiled, Buffer.from(text + keys.get(compiled)))
  }
}

/** Where the compiled form of a source is. */
export function compiledFile(source: URL): string {
  return join(COMPILED, compiledPath(fileURLToPath(source).slice(REPOSITORY.length + 1)))
}

/** Every import stays an import, of the compiled file if it names a source. */
function eachFileAlone(keys: Map<string, string>): Plugin {
  return {
    name: 'each-file-alone',
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /(?:)/ }, ({ path, kind }) =>
        kind === 'entry-point' ? undefined : { path: path.startsWith('.') ? compiledPath(path) : path, external: true },
      )
      onLoad({ filter: /\.tsx?$/ }, ({ path }) => {
        const text = readFileSync(path, 'utf8')
        keys.set(compiledPath(path.slice(REPOSITORY.length + 1)), keyLine(text))
        return { contents: text.replace(MODULE_ADDRESS, '$1js'), loader: path.endsWith('x') ? 'tsx' : 'ts' }
      })
    },
  }
}

function listFiles(folder: string): string[] {
  return readdirSync(join(REPOSITORY, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(REPOSITORY.length + 1)
        .split(sep)
        .join('/'),
    )
}

function isTypeScript(path: string): boolean {
  return /\.tsx?$/.test(path)
}

function compiledPath(path: string): string {
  return path.replace(/\.tsx?$/, '.js')
}

function keyLine(source: string): string {
  return `//# key=${createHash('sha256').update(COMPILER).update(source).digest('hex')}\n`
}

function isFresh(path: string): boolean {
  const compiled = contentsOf(compiledPath(path))
  return compiled?.toString('latin1').endsWith(keyLine(readFileSync(join(REPOSITORY, path), 'utf8'))) ?? false
}

function contentsOf(path: string): Buffer | undefined {
  try {
    return readFileSync(join(COMPILED, path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function replace(path: string, contents: Uint8Array): void {
  if (contentsOf(path)?.equals(contents) === true) return
  const target = join(COMPILED, path)
  const unfinished = `${target}.${process.pid}`
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(unfinished, contents)
  renameSync(unfinished, target)
}

/** What a moved or removed source has left, which a wrong import could still find. */
function removeOthers(wanted: ReadonlySet<string>): void {
  mkdirSync(COMPILED, { recursive: true })
  for (const folder of FOLDERS) {
    mkdirSync(join(COMPILED, folder), { recursive: true })
    const compiled = listFiles(`.compiled/${folder}`).map((path) => path.slice('.compiled/'.length))
    for (const path of compiled) if (!wanted.has(path) && !/\.\d+$/.test(path)) rmSync(join(COMPILED, path))
  }
}

/** The package by its own name, as examples import it, is what was compiled here. */
function selfImportingPackage(): string {
  return readFileSync(join(REPOSITORY, 'package.json'), 'utf8').replaceAll('"./dist/', '"./')
}
