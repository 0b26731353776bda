import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, sep } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'

/**
 * `npm test [-- NAME...]` runs every `*.test.ts` below this folder, or those whose path contains one of the names.
 * Files are listed here because on Node 20 the runner's own search does not know TypeScript: it would find nothing and succeed.
 */
const TEST_ROOT: string = import.meta.dirname

/** Folders whose tests take minutes: they run only when a name begins with theirs, as in `npm test -- crash/`. */
const SLOW_FOLDERS: readonly string[] = ['crash/', 'clients/', 'soak/']

const FILE_TIMEOUT_MS = 120_000
const SLOW_FILE_TIMEOUT_MS = 3_600_000

function listTestFiles(names: readonly string[]): string[] {
  const isSlow = (path: string): boolean => SLOW_FOLDERS.some((folder) => path.startsWith(folder))
  const wantsSlow = (path: string): boolean => names.some((name) => SLOW_FOLDERS.some((folder) => name.startsWith(folder) && path.startsWith(name)))
  return readdirSync(TEST_ROOT, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => (isSlow(path) ? wantsSlow(path) : names.length === 0 || names.some((name) => path.includes(name))))
    .sort()
}

function runFiles(files: readonly string[], timeoutMs: number): void {
  run({ files: files.map((path) => join(TEST_ROOT, path)), concurrency: Math.max(2, availableParallelism()), timeout: timeoutMs })
    .on('test:fail', () => {
      process.exitCode = 1
    })
    .compose(new spec())
    .pipe(process.stdout)
}

const names = process.argv.slice(2)
const files = listTestFiles(names)
if (files.length === 0) {
  console.error(`no test file below test/ ${names.length === 0 ? 'exists' : `has a path that contains ${names.join(' or ')}`}`)
  process.exitCode = 1
} else {
  console.log(`${files.length} test files`)
  runFiles(files, SLOW_FOLDERS.some((folder) => files[0].startsWith(folder)) ? SLOW_FILE_TIMEOUT_MS : FILE_TIMEOUT_MS)
}
