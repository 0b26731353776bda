import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, sep } from 'node:path'
import { Readable } from 'node:stream'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'

/**
 * `npm test [-- NAME...]` runs every `*.test.ts` below this folder, or those whose path contains one of the names.
 * Files are listed here because on Node 20 the runner's own search does not know TypeScript: it would find nothing and succeed.
 */
const TEST_ROOT: string = import.meta.dirname

/** Folders whose tests take minutes or need more than npm: they run only when a name begins with theirs, as in `npm test -- clients/`. */
const SLOW_FOLDERS: readonly string[] = ['browser/', 'clients/', 'hosts/', 'soak/']

/** Tests that measure time or memory run after all others, one file at a time. */
const ALONE = '.alone.test.ts'

const FILE_TIMEOUT_MS = 120_000
const SLOW_FILE_TIMEOUT_MS = 3_600_000

/** The counts that the runner reports at the end of each run. */
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/

function listTestFiles(names: readonly string[]): string[] {
  const isSlow = (path: string): boolean => SLOW_FOLDERS.some((folder) => path.startsWith(folder))
  const wantsSlow = (path: string): boolean => names.some((name) => SLOW_FOLDERS.some((folder) => name.startsWith(folder) && path.startsWith(name)))
  return readdirSync(TEST_ROOT, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => (isSlow(path) ? wantsSlow(path) : names.length === 0 || names.some((name) => path.includes(name))))
    .sort()
}

/** The events of both runs as those of one: the totals come once, at the end, added up. */
async function* runAll(files: readonly string[]): AsyncGenerator<TestEvent, void, undefined> {
  const totals = new Map<string, number>()
  const alone = files.filter((path) => path.endsWith(ALONE))
  yield* runFiles(files.filter((path) => !path.endsWith(ALONE)), Math.max(2, availableParallelism()), totals)
  yield* runFiles(alone, 1, totals)
  for (const [name, sum] of totals) yield { type: 'test:diagnostic', data: { nesting: 0, message: `${name} ${sum}` } }
}

async function* runFiles(files: readonly string[], concurrency: number, totals: Map<string, number>): AsyncGenerator<TestEvent, void, undefined> {
  if (files.length === 0) return
  const timeout = SLOW_FOLDERS.some((folder) => files[0].startsWith(folder)) ? SLOW_FILE_TIMEOUT_MS : FILE_TIMEOUT_MS
  for await (const event of run({ files: files.map((path) => join(TEST_ROOT, path)), concurrency, timeout }) as AsyncIterable<TestEvent>) {
    const [, name, value] = (event.type === 'test:diagnostic' && event.data.nesting === 0 && TOTAL.exec(event.data.message)) || []
    if (event.type === 'test:fail') process.exitCode = 1
    if (name === undefined) yield event
    else totals.set(name, (totals.get(name) ?? 0) + Number(value))
  }
}

const names = process.argv.slice(2)
const files = listTestFiles(names)
if (files.length === 0) {
  console.error(`no test file below test/ ${names.length === 0 ? 'exists' : `has a path that contains ${names.join(' or ')}`}`)
  process.exitCode = 1
} else {
  console.log(`${files.length} test files`)
  Readable.from(runAll(files)).compose(new spec()).pipe(process.stdout)
}
