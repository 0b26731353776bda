import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { dirname, extname, relative, resolve } from 'node:path'
import { MB } from '../../limits.ts'

/** Files beyond this number are not read. */
const FILES_MAX = 1_000
export const CODE_BYTES_MAX: number = 64 * MB
const CODE = /^\.[cm]?[jt]sx?$/
/**
 * `from './a.js'`, `import './a.js'`, `import('./a.js')` and `require('./a.js')`. Matches in comments and texts are
 * found as well, and do no harm.
 */
const LOCAL_SPECIFIER = /\b(?:from|import|require)\s{0,9}\(?\s{0,9}(['"`])(\.{1,2}\/[^'"`$\\\n]{1,1000})\1/g
/**
 * The file names that an import may stand for: TypeScript is imported by the name of its output, and CommonJS omits
 * extensions.
 */
const ENDINGS = ['', '.js', '.cjs', '.mjs', '.json', '.ts', '.cts', '.mts', '.tsx', '/index.js', '/index.ts']

export interface CodeDigest {
  readonly digest: string
  readonly files: readonly string[]
}

/**
 * The SHA-256 of a file and of all files that it imports by a relative path, directly or indirectly: at most 1,000
 * files and 64 MB. Packages are not included, nor files whose names are computed at run time. A file without imports
 * has the digest of its text.
 */
export async function digestWithImports(path: string): Promise<CodeDigest> {
  const digests = new Map<string, string>()
  const waiting = [resolve(path)]
  let bytes = 0
  for (const file of waiting) {
    const code = await readFile(file)
    bytes += code.length
    digests.set(file, createHash('sha256').update(code).digest('hex'))
    if (bytes >= CODE_BYTES_MAX) break
    if (!CODE.test(extname(file))) continue
    for (const imported of await localImports(file, code.toString('utf8'))) {
      if (waiting.length < FILES_MAX && !waiting.includes(imported)) waiting.push(imported)
    }
  }
  const files = [...digests.keys()]
  const [own] = digests.values()
  if (digests.size === 1) return { digest: own, files }
  const named = [...digests]
    .map(([file, digest]) => [relative(dirname(path), file), digest])
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return { digest: createHash('sha256').update(JSON.stringify(named)).digest('hex'), files }
}

/** In the order of their names; node will complain about missing ones. */
async function localImports(file: string, code: string): Promise<readonly string[]> {
  const specifiers = new Set([...code.matchAll(LOCAL_SPECIFIER)].map(([, , specifier]) => specifier))
  const found: string[] = []
  for (const specifier of specifiers) {
    const imported = await firstFile(candidates(resolve(dirname(file), specifier.replace(/[?#].*$/, ''))))
    if (imported !== undefined) found.push(imported)
  }
  return found
}

function candidates(path: string): readonly string[] {
  const asTypeScript = path.replace(/\.([cm]?)js(x?)$/, '.$1ts$2')
  return [...ENDINGS.map((ending) => `${path}${ending}`), ...(asTypeScript === path ? [] : [asTypeScript])]
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const found = await stat(path).catch(() => undefined)
    if (found?.isFile() === true && found.size <= CODE_BYTES_MAX) return path
  }
  return undefined
}
