import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { readRooms } from './support/rooms.ts'
import {
  findCycle,
  packageEntryPoints,
  reachableFiles,
  readRootFiles,
  readSource,
  readSources,
  type SourceFile,
} from './support/sources.ts'

/**
 * The style of the house as a test. The lists of exceptions may only become shorter; each entry says why it is there.
 */

/** Of formatted code. A test file is a list of cases, which is read case by case. */
const FILE_LINES_MAX = 350
const TEST_FILE_LINES_MAX = 450
const MOUNT_LINES_MAX = 75

/** What each folder may import. */
const ROOMS: Readonly<Record<string, readonly string[]>> = readRooms()
const product: readonly SourceFile[] = readSources(['src', 'adapters'])
/** Imports from one folder to another. */
const edges: readonly { readonly path: string; readonly target: string; readonly from: string; readonly to: string }[] =
  product.flatMap(({ path, imports }) =>
    imports
      .filter((target) => folderOf(target) !== folderOf(path))
      .map((target) => ({ path, target, from: folderOf(path), to: folderOf(target) })),
  )
const everything: readonly SourceFile[] = [...product, ...readSources(['bench', 'test', 'docs/tools'])]
const texts: readonly SourceFile[] = [...everything, ...readSources(['.ci'], ['']), ...readRootFiles()]

test('a folder imports only folders that the allowlist names', () => {
  assertNone(
    edges.filter(({ from, to }) => !mayImport(from, to)).map(({ path, target }) => `${path} imports ${target}`),
  )
})

test('the allowlist names only existing and used folders', () => {
  const folders = new Set(product.map(({ path }) => folderOf(path)))
  assertNone(Object.keys(ROOMS).filter((folder) => !folders.has(folder)))
  const used = new Set(edges.map(({ from, to }) => `${from} imports ${to}`))
  const named = Object.entries(ROOMS).flatMap(([from, targets]) => targets.map((to) => `${from} imports ${to}`))
  assertNone(named.filter((edge) => !used.has(edge)).map((edge) => `nothing in ${edge} any more`))
})

test('folders form no circle, and the allowlist goes from the inside out', () => {
  const order = Object.keys(ROOMS)
  const back = Object.entries(ROOMS).flatMap(([from, targets]) =>
    targets
      .filter((to) => order.indexOf(to) >= order.indexOf(from))
      .map((to) => `${from} stands before ${to}, which it imports`),
  )
  assertNone(back)
})

test('at most five files lie directly in src', () => {
  const direct = product.filter(({ path }) => dirname(path) === 'src').map(({ path }) => path)
  assertNone(direct.length > 5 ? direct : [])
})

test('a mount is thin: it imports only types of the core', () => {
  const mounts = product.filter(({ path }) => path.startsWith('src/mounts/'))
  assert.ok(mounts.length >= 3)
  assertNone(findLines(mounts, /^\s*(?:import(?! type )|export .*\bfrom\b)|\bimport\(|\brequire\(/))
  const sizes = mounts.map(({ path, lines }) => ({
    path,
    size: lines.filter((line) => !/^\s*(?:$|\/\*|\*|\/\/)/.test(line)).length,
  }))
  assertNone(
    sizes.filter(({ size }) => size > MOUNT_LINES_MAX).map(({ path, size }) => `${path} has ${size} lines of code`),
  )
})

test('the client runs in browsers: it imports no Node module and no package, and shares only deltas, ready blocks, aborting, the error table and the types of reports with the server', () => {
  const client = product.filter(
    ({ path }) =>
      /^src\/(?:(?:blocks|client|delta)\/|object\/upkeep-wire-types\.ts$)/.test(path) &&
      path !== 'src/client/level-cache.ts',
  )
  assert.ok(client.length > 10)
  const shared = /^src\/(?:blocks\/|client\/|delta\/|errors\.ts$|async\/abort\.ts$|object\/upkeep-wire-types\.ts$)/
  const foreign = client.flatMap(({ path, imports }) =>
    imports.filter((target) => !shared.test(target)).map((target) => `${path} imports ${target}`),
  )
  assertNone([...foreign, ...findLines(client, /^(?!\s*\*).*(?:\bfrom '(?!\.)|\bimport\('|reference types)/)])
})

test('function inputs stand alone, for functions, server and pages: they import only the errors', () => {
  const inputs = product.filter(({ path }) => path.startsWith('src/automation/author/inputs/'))
  assert.ok(inputs.length > 10)
  assertNone(
    inputs.flatMap(({ path, imports }) =>
      imports
        .filter((target) => !/^src\/(?:automation\/author\/inputs\/|errors\.ts$)/.test(target))
        .map((target) => `${path} imports ${target}`),
    ),
  )
  assertNone(findLines(inputs, /\bfrom '(?!\.|re2js')|\bimport\('|reference types/))
})

test('only the pages use Hono', () => {
  assertNone(
    findLines(
      product.filter(({ path }) => !path.startsWith('src/pages/')),
      /\bfrom 'hono\b|\bimport\('hono\b/,
    ),
  )
})

test('imports form no circle', () => {
  assert.equal(findCycle(everything)?.join(' -> '), undefined)
})

test('every relative import names a file that exists', () => {
  const paths = new Set(everything.map(({ path }) => path))
  const broken = everything.flatMap(({ path, imports }) =>
    imports
      .filter((target) => /\.tsx?$/.test(target) && !paths.has(target))
      .map((target) => `${path} imports ${target}`),
  )
  assertNone(broken)
})

test('every product file is reachable from an entry point of the package', () => {
  const reached = reachableFiles(product, packageEntryPoints())
  assertNone(product.map(({ path }) => path).filter((path) => !reached.has(path)))
})

test('every helper of tests and benchmarks is used', () => {
  const starts = everything.map(({ path }) => path).filter((path) => path.endsWith('.test.ts') || isStarted(path))
  const reached = reachableFiles(everything, [...starts, ...packageEntryPoints()])
  const unused = everything
    .map(({ path }) => path)
    .filter((path) => !path.startsWith('test/types/') && !reached.has(path))
  assertNone(unused)
})

test('files are short', () => {
  const long = everything.filter(
    ({ path, lines }) => lines.length > (path.startsWith('test/') ? TEST_FILE_LINES_MAX : FILE_LINES_MAX) + 1,
  )
  assertNone(long.map(({ path, lines }) => `${path} has ${lines.length - 1} lines`))
})

test('no unfinished work is left', () => {
  assertNone(findLines(everything, /\b(?:TODO|FIXME|XXX|HACK)\b/))
  assertNone(findLines(everything, /\b(?:test|it|describe|suite)\.only\(|\bonly: true|^\s*debugger\b/))
  assertNone(findLines(everything, /@ts-ignore|@ts-nocheck/))
  assertNone(findLines(everything, /^\s*\/\/ *(?:const|let|return|await|if|for|import|export|\}) ?[^a-z]*[({=;]/))
})

test('the product prints nothing, except in its commands', () => {
  assertNone(
    findLines(
      product.filter(({ path }) => !startsWithOneOf(path, ['src/cli/', 'src/automation/runtime/command/'])),
      // Lines of docstrings are not the product: their examples may print.
      /^(?!\s*\*).*(?:\bconsole\.|process\.std(?:out|err)\b)/,
    ),
  )
})

test('the product has no type `any`', () => {
  assertNone(findLines(product, /(?:[:<,|&(]\s*|\bas )any\b(?![ -]?[a-z])/))
})

test('no product module keeps mutable state', () => {
  assertNone(findLines(product, /^(?:export )?(?:let|var) /))
})

test('the core takes time, timers, randomness and the thread pool from its environment only', () => {
  const core = product.filter(
    ({ path }) =>
      /^src\/(?:store|memory|async|object|inspect|emit|decode|operations|service|compression|events|simulation)\//.test(
        path,
      ) ||
      /^src\/(?:storage|automation-server|automation-server\/runner)\/[^/]+$/.test(path) ||
      (/^src\/automation(?:-server\/(?:domain|records|upkeep)|\/runtime\/run)\//.test(path) &&
        // Nonces of ciphers never repeat, whatever the environment is.
        path !== 'src/automation-server/domain/secrets.ts'),
  )
  assert.ok(core.length > 100)
  assertNone(
    findLines(
      core,
      /\bDate\b(?!['`.]|\w)|new Date\b|\bperformance\.|\bset(?:Timeout|Interval|Immediate)\b|\brandom(?:Bytes|UUID|Int)\(|Math\.random|process\.hrtime|AbortSignal\.timeout|\bavailableParallelism\b|from 'node:timers|\bimport \{[^}]*\brandom\w* [^}]*\} from 'node:crypto'/,
    ).filter(
      (line) =>
        !/environment\.randomBytes\(|\brandomBytes\(sizeBytes: number\)|new Date\(this\.#store\.clock\.now\(\)\)/.test(
          line,
        ),
    ),
  )
})

test('no file names a machine path, a registry or a credential', () => {
  assertNone(findLines(texts, /(?:^|[\s'"`(=])\/(?:home|work|root|Users)\/|\b[A-Z]:\\Users/))
  assertNone(findLines(texts, /https?:\/\/[\w.-]*(?:registry|npmjs|pypi)[\w.-]*|_authToken/i))
})

test('the lock file does not name package sources', () => {
  assertNone(findLines([readSource('package-lock.json'), readSource('docs/tools/package-lock.json')], /"resolved"/))
})

/** The folder of a file, as the list of folders names it: the entry point stands apart from what lies beside it. */
function folderOf(path: string): string {
  return Object.hasOwn(ROOMS, path) ? path : dirname(path)
}

function mayImport(from: string, to: string): boolean {
  return from === to || (ROOMS[from] ?? []).includes(to)
}

test('every section of the pipeline states its budget, 25 minutes in total', () => {
  const sections = readSource('.ci/run').lines.filter((line) => /^ *section \S/.test(line))
  assertNone(sections.filter((line) => !/^ *section \S+ \d+ \S/.test(line)))
  const seconds = sections.reduce((sum, line) => sum + Number(/^ *section \S+ (\d+)/.exec(line)?.[1]), 0)
  assert.ok(sections.length > 10 && seconds <= 25 * 60, `${seconds} s`)
})

/** Shows every finding, one a line. */
function assertNone(findings: readonly string[]): void {
  assert.equal(findings.join('\n'), '')
}

function startsWithOneOf(path: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => path.startsWith(prefix))
}

/** Whether a script of the package, or the pipeline, starts this file. */
function isStarted(path: string): boolean {
  return texts.some(
    (file) => (file.path === 'package.json' || file.path.startsWith('.ci/')) && file.text.includes(path),
  )
}

function findLines(files: readonly SourceFile[], pattern: RegExp): string[] {
  return files
    .filter(({ path }) => path !== 'test/tidy.test.ts')
    .flatMap(({ path, lines }) =>
      lines.flatMap((line, index) =>
        pattern.test(line) ? [`${path}:${index + 1}: ${line.trim().slice(0, 120)}`] : [],
      ),
    )
}
