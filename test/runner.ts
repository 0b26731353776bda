import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

/**
 * Folders whose tests take minutes or need more than npm: they run only when a name begins with theirs, as in `npm test
 * -- clients/`.
 */
const SLOW_FOLDERS: readonly string[] = [
  'attacks/',
  'browser/',
  'clients/',
  'deploy/',
  'engines/',
  'fuzz/',
  'hosts/',
  'lifecycle/',
  'processes/',
  'recipes/',
  'schemathesis/',
  'soak/',
]

/**
 * Matrices and faults: each of these files takes as long as ten others. They run when a name fits, as "thorough" does
 * for all.
 */
const THOROUGH = '.thorough.'

/** Tests that measure time or memory run after all others, one file at a time. */
const ALONE = '.alone.test.js'

/**
 * Files share processes: starting one for each takes a fifth of the processor time. Some of them wait, so more
 * processes run than there are cores.
 */
const CONCURRENCY: number = 2 * Math.max(2, availableParallelism())
const GROUPS_MAX: number = 1.5 * CONCURRENCY
const FILES_PER_GROUP_MIN = 6

/** How long each file took when it ran last. Files that never ran here are taken for average ones. */
const DURATIONS_FILE: string = join(TEST_ROOT, '..', 'durations.json')
const DURATION_MS_DEFAULT = 1_000

/**
 * A process takes a minute at most; a machine that is very slow may take its time. What one file makes, tokens for
 * example, is still valid when a test of another file in its process has timed out.
 */
const PROCESS_TIMEOUT_MS = 400_000

/** A file of the slow folders has hours, since `npm run soak` gives it much to do. The pipeline sets less. */
const SLOW_PROCESS_TIMEOUT_MS: number = Number(process.env.STOWAGE_TEST_FILE_SECONDS_MAX ?? 7_200) * 1_000

/**
 * The files in which a test failed when tests ran last. With `STOWAGE_TEST_SECOND_TRY=1` only those run, alone: the
 * pipeline tells a test that fails at random from one that always does, and reports both.
 */
const FAILED_FILE: string = join(TEST_ROOT, '..', 'failed.json')
const UNKNOWN_FILE = 'unknown'
const IS_SECOND_TRY: boolean = process.env.STOWAGE_TEST_SECOND_TRY === '1'

/** A run that a test started: the files are those of the run around it. */
const IS_INNER: boolean = process.env.STOWAGE_TEST_SHARED !== undefined

/** The counts that the runner reports at the end of each run. */
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/

function isSlow(path: string): boolean {
  return SLOW_FOLDERS.some((folder) => path.startsWith(folder))
}

function listTestFiles(names: readonly string[]): string[] {
  const wantsSlow = (path: string): boolean =>
    names.some((name) => SLOW_FOLDERS.some((folder) => name.startsWith(folder) && path.startsWith(name)))
  const failedBefore = IS_SECOND_TRY ? (JSON.parse(readFileSync(FAILED_FILE, 'utf8')) as readonly string[]) : []
  return readdirSync(TEST_ROOT, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => path.endsWith('.test.js'))
    .filter((path) => !IS_SECOND_TRY || failedBefore.includes(path))
    .filter((path) => (isSlow(path) ? wantsSlow(path) : isChosen(path, names)))
    .sort()
}

function isChosen(path: string, names: readonly string[]): boolean {
  if (names.length === 0) return !path.includes(THOROUGH)
  return names.some((name) => path.includes(name))
}

/**
 * Files that run in one process. The longest are placed first, each in the group that has least to do; long groups
 * start before short ones.
 */
function groupFiles(files: readonly string[]): readonly (readonly string[])[] {
  const durations = readDurations()
  const durationOf = (path: string): number => durations[path] ?? DURATION_MS_DEFAULT
  const slow = files.filter(isSlow).map((path) => ({ paths: [path], durationMs: durationOf(path) }))
  const length = Math.min(GROUPS_MAX, Math.ceil(files.length / FILES_PER_GROUP_MIN))
  const groups = Array.from({ length }, () => ({ paths: [] as string[], durationMs: 0 }))
  for (const path of files.filter((path) => !isSlow(path)).sort((a, b) => durationOf(b) - durationOf(a))) {
    const group = groups.reduce((least, other) => (other.durationMs < least.durationMs ? other : least))
    group.paths.push(path)
    group.durationMs += durationOf(path)
  }
  return [...slow, ...groups]
    .filter(({ paths }) => paths.length > 0)
    .sort((a, b) => b.durationMs - a.durationMs)
    .map(({ paths }) => paths)
}

function readDurations(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(DURATIONS_FILE, 'utf8')) as Record<string, number>
  } catch {
    return {}
  }
}

function keepDurations(durations: ReadonlyMap<string, number>): void {
  writeFileSync(DURATIONS_FILE, JSON.stringify({ ...readDurations(), ...Object.fromEntries(durations) }))
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

/** What both runs have in common: the runner's counts added up, what each file took, and in which a test failed. */
interface Outcome {
  readonly totals: Map<string, number>
  readonly durations: Map<string, number>
  readonly failed: Set<string>
}

/** The events of both runs as those of one: the totals come once, at the end, added up. */
async function* runAll(files: readonly string[]): AsyncGenerator<TestEvent, void, undefined> {
  const outcome: Outcome = { totals: new Map(), durations: new Map(), failed: new Set() }
  const isAlone = (path: string): boolean => IS_SECOND_TRY || path.endsWith(ALONE)
  const folder = mkdtempSync(join(tmpdir(), 'stowage-tests-'))
  try {
    const together = groupFiles(files.filter((path) => !isAlone(path))).map((group) => entryOf(group, folder))
    yield* runEntries(together, CONCURRENCY, outcome)
    const alone = files.filter(isAlone).map((path) => join(TEST_ROOT, path))
    yield* runEntries(alone, 1, outcome)
  } finally {
    rmSync(folder, { recursive: true })
    if (!IS_INNER) {
      keepDurations(outcome.durations)
      writeFileSync(FAILED_FILE, JSON.stringify([...outcome.failed].sort()))
    }
  }
  for (const [name, sum] of outcome.totals)
    yield { type: 'test:diagnostic', data: { nesting: 0, message: `${name} ${sum}` } }
}

async function* runEntries(
  entries: readonly string[],
  concurrency: number,
  { totals, durations, failed }: Outcome,
): AsyncGenerator<TestEvent, void, undefined> {
  if (entries.length === 0) return
  const timeout = files.some(isSlow) ? SLOW_PROCESS_TIMEOUT_MS : PROCESS_TIMEOUT_MS
  for await (const event of run({ files: [...entries], concurrency, timeout }) as AsyncIterable<TestEvent>) {
    const [, name, value] =
      (event.type === 'test:diagnostic' && event.data.nesting === 0 && TOTAL.exec(event.data.message)) || []
    if (event.type === 'test:fail') {
      process.exitCode = 1
      for (const path of failedFilesOf(event.data)) failed.add(path)
    }
    if ((event.type === 'test:pass' || event.type === 'test:fail') && event.data.nesting === 0)
      measure(event.data, durations)
    if (name === undefined) yield event
    else totals.set(name, (totals.get(name) ?? 0) + Number(value))
  }
}

/** Adds what a test took to the time of its file. */
function measure(
  data: { readonly file?: string; readonly details: { readonly duration_ms: number } },
  durations: Map<string, number>,
): void {
  const path = testFileOf(data)
  if (path !== undefined) durations.set(path, (durations.get(path) ?? 0) + data.details.duration_ms)
}

/** The compiled file of a test, below the folder of all tests. Newer runners name the source instead. */
function testFileOf({ file }: { readonly file?: string }): string | undefined {
  const [, path] = /^.*\/test\/(.+\.test)\.[jt]s$/.exec(file?.split(sep).join('/') ?? '') ?? []
  return path === undefined ? undefined : `${path}.js`
}

/** The files in which a test may have failed: one that a module beside them registers is of each that runs there. */
function failedFilesOf(data: { readonly file?: string }): readonly string[] {
  const path = testFileOf(data)
  if (path !== undefined) return [path]
  const [, folder] = /^.*\/test\/(.+\/)[^/]+\.[jt]s$/.exec(data.file?.split(sep).join('/') ?? '') ?? []
  const beside = folder === undefined ? [] : files.filter((one) => one.startsWith(folder))
  return beside.length === 0 ? [UNKNOWN_FILE] : beside
}

/** Paths of sources are names too. */
const names = process.argv.slice(2).map((name) => name.replace(/^(?:\.\/)?test\//, '').replace(/\.ts$/, ''))
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
