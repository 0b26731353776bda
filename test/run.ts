import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { Readable } from 'node:stream'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { pathToFileURL } from 'node:url'

/**
 * `npm test [-- NAME...]` runs every `*.test.ts` below this folder, or those whose path contains one of the names.
 * Files are listed here because on Node 20 the runner's own search does not know TypeScript: it would find nothing and succeed.
 */
const TEST_ROOT: string = import.meta.dirname

/** Folders whose tests take minutes or need more than npm: they run only when a name begins with theirs, as in `npm test -- clients/`. */
const SLOW_FOLDERS: readonly string[] = ['browser/', 'clients/', 'fuzz/', 'hosts/', 'processes/', 'soak/']

/** Tests that measure time or memory run after all others, one file at a time. */
const ALONE = '.alone.test.ts'

/** Files share processes: a third of the whole time went into starting one for each. */
const FILES_PER_PROCESS_MAX = 10

/** A process takes a minute at most; a machine that is very slow may take its time. */
const PROCESS_TIMEOUT_MS = 900_000
const SLOW_PROCESS_TIMEOUT_MS = 3_600_000

/** The counts that the runner reports at the end of each run. */
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/

function isSlow(path: string): boolean {
  return SLOW_FOLDERS.some((folder) => path.startsWith(folder))
}

function listTestFiles(names: readonly string[]): string[] {
  const wantsSlow = (path: string): boolean =>
    names.some((name) => SLOW_FOLDERS.some((folder) => name.startsWith(folder) && path.startsWith(name)))
  return readdirSync(TEST_ROOT, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) =>
      isSlow(path) ? wantsSlow(path) : names.length === 0 || names.some((name) => path.includes(name)),
    )
    .sort()
}

/** Files that run in one process, each group in the order of its files. */
function groupFiles(files: readonly string[]): readonly (readonly string[])[] {
  const groups: string[][] = []
  for (const path of files) {
    const last = groups.at(-1)
    const mayJoin = last !== undefined && last.length < FILES_PER_PROCESS_MAX && !isSlow(path)
    if (mayJoin) last.push(path)
    else groups.push([path])
  }
  return groups
}

/** The runner starts one process for each file that it is given: this one stands for all of its group. */
function entryOf(group: readonly string[], folder: string): string {
  if (group.length === 1) return join(TEST_ROOT, group[0])
  const entry = join(folder, `${group[0].replaceAll('/', '-')}.mjs`)
  writeFileSync(
    entry,
    group.map((path) => `import ${JSON.stringify(pathToFileURL(join(TEST_ROOT, path)).href)}\n`).join(''),
  )
  return entry
}

/** The events of both runs as those of one: the totals come once, at the end, added up. */
async function* runAll(files: readonly string[]): AsyncGenerator<TestEvent, void, undefined> {
  const totals = new Map<string, number>()
  const alone = files.filter((path) => path.endsWith(ALONE))
  const folder = mkdtempSync(join(tmpdir(), 'stowage-tests-'))
  try {
    const together = groupFiles(files.filter((path) => !path.endsWith(ALONE))).map((group) => entryOf(group, folder))
    yield* runEntries(together, 2 * Math.max(2, availableParallelism()), totals)
    yield* runEntries(
      alone.map((path) => join(TEST_ROOT, path)),
      1,
      totals,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
  for (const [name, sum] of totals) yield { type: 'test:diagnostic', data: { nesting: 0, message: `${name} ${sum}` } }
}

async function* runEntries(
  entries: readonly string[],
  concurrency: number,
  totals: Map<string, number>,
): AsyncGenerator<TestEvent, void, undefined> {
  if (entries.length === 0) return
  const timeout = files.some(isSlow) ? SLOW_PROCESS_TIMEOUT_MS : PROCESS_TIMEOUT_MS
  for await (const event of run({ files: [...entries], concurrency, timeout }) as AsyncIterable<TestEvent>) {
    const [, name, value] =
      (event.type === 'test:diagnostic' && event.data.nesting === 0 && TOTAL.exec(event.data.message)) || []
    if (event.type === 'test:fail') process.exitCode = 1
    if (name === undefined) yield event
    else totals.set(name, (totals.get(name) ?? 0) + Number(value))
  }
}

const names = process.argv.slice(2)
const files = listTestFiles(names)
if (files.length === 0) {
  console.error(
    `no test file below test/ ${names.length === 0 ? 'exists' : `has a path that contains ${names.join(' or ')}`}`,
  )
  process.exitCode = 1
} else {
  console.log(`${files.length} test files`)
  Readable.from(runAll(files)).compose(new spec()).pipe(process.stdout)
}
