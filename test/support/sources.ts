import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, sep } from 'node:path'
import { REPOSITORY } from '../../bench/repository.ts'

export interface SourceFile {
  /** Relative to the repository, with forward slashes. */
  readonly path: string
  readonly text: string
  readonly lines: readonly string[]
  /** Files of the repository that this one imports, types included. */
  readonly imports: readonly string[]
}

/** Imports, re-exports and dynamic imports; and the files of other processes, which are named by `new URL`. */
const RELATIVE_IMPORT = /(?:\b(?:from|import)\s*\(?\s*'(?=\.{1,2}\/)|\bnew URL\('(?=[^':]+\.[cm]?ts'))([^']+)'/g

/** Every file with one of the endings below the given folders. */
export function readSources(
  folders: readonly string[],
  endings: readonly string[] = ['.ts', '.tsx', '.cts', '.mts'],
): SourceFile[] {
  return folders
    .filter((folder) => existsSync(join(REPOSITORY, folder)))
    .flatMap((folder) =>
      readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' }).map(
        (path) => `${folder}/${path.split(sep).join('/')}`,
      ),
    )
    .filter((path) => !path.includes('/node_modules/') && endings.some((ending) => path.endsWith(ending)))
    .sort()
    .map(readSource)
}

/** The files in the repository's own folder that people write: documents and settings. */
export function readRootFiles(): SourceFile[] {
  return readdirSync(REPOSITORY)
    .filter((name) => /\.(?:md|json)$|^\.(?:npmrc|gitignore)$/.test(name))
    .sort()
    .map(readSource)
}

export function readSource(path: string): SourceFile {
  const text = readFileSync(join(REPOSITORY, path), 'utf8')
  const imports = [...text.matchAll(RELATIVE_IMPORT)].map((match) => posix.join(posix.dirname(path), match[1]))
  return { path, text, lines: text.split('\n'), imports }
}

/** The TypeScript files behind `exports` and `bin` of the package. */
export function packageEntryPoints(): string[] {
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { default: string }>
    bin: Record<string, string>
  }
  return [...Object.values(manifest.exports), ...Object.values(manifest.bin)]
    .map((target) => (typeof target === 'string' ? target : target.default))
    .filter((target) => target.startsWith('./dist/'))
    .map((target) => target.replace('./dist/', '').replace(/js$/, 'ts'))
}

/** The files that can be reached from `starts` by imports, `starts` included. */
export function reachableFiles(sources: readonly SourceFile[], starts: readonly string[]): Set<string> {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const reached = new Set(starts)
  for (const path of reached) for (const next of byPath.get(path)?.imports ?? []) reached.add(next)
  return reached
}

/** One cycle of imports as a list of paths, or `undefined`. */
export function findCycle(sources: readonly SourceFile[]): readonly string[] | undefined {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]): readonly string[] | undefined => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path]
    if (done.has(path)) return undefined
    for (const next of byPath.get(path)?.imports ?? []) {
      const cycle = visit(next, [...trail, path])
      if (cycle !== undefined) return cycle
    }
    done.add(path)
    return undefined
  }
  for (const { path } of sources) {
    const cycle = visit(path, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}
