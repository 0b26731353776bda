import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  findCycle,
  packageEntryPoints,
  reachableFiles,
  readRootFiles,
  readSource,
  readSources,
  type SourceFile,
} from './support/sources.ts'

/** The style of the house as a test. The lists of exceptions may only become shorter; each entry says why it is there. */

const FILE_LINES_MAX = 300
const MOUNT_LINES_MAX = 60
const LONGER_FILES: Readonly<Record<string, string>> = {}

const STAGES: readonly string[] = ['src/access/', 'src/decode/', 'src/store/', 'src/emit/', 'src/http/', 'src/cli/']

/** What automation is built on, and what knows nothing of it. */
const CORE: readonly string[] = [
  'adapters/',
  'src/access/',
  'src/client/',
  'src/compression/',
  'src/decode/',
  'src/emit/',
  'src/extension.ts',
  'src/http/',
  'src/index.ts',
  'src/mounts/',
  'src/object/',
  'src/service.ts',
  'src/storage/',
  'src/store/',
]

interface Direction {
  readonly from: readonly string[]
  readonly mayNotImport: readonly string[]
  readonly except?: readonly string[]
}

const DIRECTIONS: readonly Direction[] = [
  {
    from: ['src/'],
    mayNotImport: ['adapters/'],
    except: ['src/cli/storage.ts', 'src/automation/testing/memory-service.ts'],
  },
  { from: ['src/', 'adapters/'], mayNotImport: ['test/', 'bench/'] },
  { from: ['src/decode/'], mayNotImport: ['src/store/', 'src/emit/'] },
  { from: ['src/store/'], mayNotImport: ['src/decode/', 'src/emit/'] },
  { from: ['src/emit/'], mayNotImport: ['src/decode/', 'src/store/'] },
  { from: ['src/object/', 'src/errors.ts', 'src/limits.ts'], mayNotImport: STAGES },
  {
    from: ['src/access/', 'src/decode/', 'src/store/', 'src/emit/', 'src/storage/', 'adapters/'],
    mayNotImport: ['src/http/', 'src/cli/', 'src/index.ts', 'src/service.ts'],
  },
  {
    from: ['src/delta/'],
    mayNotImport: ['adapters/', ...STAGES, 'src/client/', 'src/object/', 'src/storage/', 'src/errors.ts'],
  },
  { from: ['src/http/'], mayNotImport: ['src/cli/', 'src/index.ts'] },
  { from: ['src/'], mayNotImport: ['src/mounts/'] },
  { from: ['src/events/'], mayNotImport: STAGES },
  { from: STAGES.filter((stage) => stage !== 'src/cli/'), mayNotImport: ['src/metrics/'] },
  {
    from: ['src/openapi/'],
    mayNotImport: [...STAGES, 'src/object/', 'src/storage/', 'src/compression/', 'src/service.ts', 'src/index.ts'],
  },
  { from: CORE, mayNotImport: ['src/automation/', 'src/automation-server/'] },
  { from: ['src/automation/'], mayNotImport: ['src/automation-server/'] },
  {
    from: ['src/automation-server/'],
    mayNotImport: ['src/cli/', 'src/index.ts', 'src/service.ts', 'src/decode/', 'src/emit/'],
  },
  { from: ['src/storage/'], mayNotImport: STAGES },
  {
    from: [...STAGES, 'src/object/', 'src/storage/', 'src/client/', 'src/mounts/', 'src/service.ts'],
    mayNotImport: ['src/automation/'],
  },
  {
    from: ['src/automation/'],
    mayNotImport: [...STAGES, 'src/storage/', 'src/service.ts', 'src/index.ts'],
    except: ['src/automation/testing/memory-service.ts'],
  },
  {
    from: ['src/automation/run/', 'src/automation/http/'],
    mayNotImport: ['src/automation/command/', 'src/automation/testing/'],
  },
  {
    from: [
      ...STAGES.filter((stage) => stage !== 'src/cli/'),
      'src/object/',
      'src/storage/',
      'src/automation/',
      'src/automation-server/',
      'src/service.ts',
      'src/index.ts',
    ],
    mayNotImport: ['src/pages/'],
  },
  {
    from: ['src/pages/'],
    mayNotImport: ['src/cli/', 'src/client/', 'src/store/', 'src/storage/', 'src/index.ts', 'src/service.ts'],
  },
]

const product: readonly SourceFile[] = readSources(['src', 'adapters'])
const everything: readonly SourceFile[] = [...product, ...readSources(['bench', 'test', 'docs/tools'])]
const texts: readonly SourceFile[] = [...everything, ...readSources(['.ci'], ['']), ...readRootFiles()]

test('imports point in the directions of the architecture', () => {
  const wrong = DIRECTIONS.flatMap(({ from, mayNotImport, except = [] }) =>
    product
      .filter(({ path }) => startsWithOneOf(path, from) && !except.includes(path))
      .flatMap(({ path, imports }) =>
        imports.filter((target) => startsWithOneOf(target, mayNotImport)).map((target) => `${path} imports ${target}`),
      ),
  )
  assertNone(wrong)
})

test('a mount is thin: it has nothing of the core but its types', () => {
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

test('the client runs in browsers: it imports nothing of Node, nothing of a package, and what it shares with the server is deltas and the table of errors', () => {
  const client = product.filter(
    ({ path }) => /^src\/(?:client|delta)\//.test(path) && path !== 'src/client/level-cache.ts',
  )
  assert.ok(client.length > 10)
  const foreign = client.flatMap(({ path, imports }) =>
    imports
      .filter((target) => !/^src\/(?:client\/|delta\/|errors\.ts$)/.test(target))
      .map((target) => `${path} imports ${target}`),
  )
  assertNone([...foreign, ...findLines(client, /\bfrom '(?!\.)|\bimport\('|reference types/)])
})

test('inputs of functions stand alone, so that functions, the server and pages share them: of the rest they have the errors', () => {
  const inputs = product.filter(({ path }) => path.startsWith('src/automation/inputs/'))
  assert.ok(inputs.length > 10)
  assertNone(
    inputs.flatMap(({ path, imports }) =>
      imports
        .filter((target) => !/^src\/(?:automation\/inputs\/|errors\.ts$)/.test(target))
        .map((target) => `${path} imports ${target}`),
    ),
  )
  assertNone(findLines(inputs, /\bfrom '(?!\.|re2js')|\bimport\('|reference types/))
})

test('only the pages are written with Hono', () => {
  assertNone(
    findLines(
      product.filter(({ path }) => !path.startsWith('src/pages/')),
      /\bfrom 'hono\b|\bimport\('hono\b/,
    ),
  )
})

test('imports form no cycle', () => {
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

test('every file of the product can be reached from an entry point of the package', () => {
  const reached = reachableFiles(product, packageEntryPoints())
  assertNone(product.map(({ path }) => path).filter((path) => !reached.has(path)))
})

test('every helper of the tests and benchmarks is used', () => {
  const starts = everything.map(({ path }) => path).filter((path) => path.endsWith('.test.ts') || isStarted(path))
  const reached = reachableFiles(everything, [...starts, ...packageEntryPoints()])
  const unused = everything
    .map(({ path }) => path)
    .filter((path) => !path.startsWith('test/types/') && !reached.has(path))
  assertNone(unused)
})

test('files are short', () => {
  const long = everything.filter(({ path, lines }) => lines.length > FILE_LINES_MAX + 1 && !(path in LONGER_FILES))
  assertNone(long.map(({ path, lines }) => `${path} has ${lines.length - 1} lines`))
  const needless = Object.keys(LONGER_FILES).filter(
    (path) => !everything.some((file) => file.path === path && file.lines.length > FILE_LINES_MAX + 1),
  )
  assertNone(needless.map((path) => `${path} needs no exception any more`))
})

test('nothing unfinished is left behind', () => {
  assertNone(findLines(everything, /\b(?:TODO|FIXME|XXX|HACK)\b/))
  assertNone(findLines(everything, /\b(?:test|it|describe|suite)\.only\(|\bonly: true|^\s*debugger\b/))
  assertNone(findLines(everything, /@ts-ignore|@ts-nocheck/))
  assertNone(findLines(everything, /^\s*\/\/ *(?:const|let|return|await|if|for|import|export|\}) ?[^a-z]*[({=;]/))
})

test('the product prints nothing, except for its commands', () => {
  assertNone(
    findLines(
      product.filter(({ path }) => !startsWithOneOf(path, ['src/cli/', 'src/automation/command/'])),
      /\bconsole\.|process\.std(?:out|err)\b/,
    ),
  )
})

test('the product has no type `any`', () => {
  assertNone(findLines(product, /(?:[:<,|&(]\s*|\bas )any\b(?![ -]?[a-z])/))
})

test('no module of the product keeps mutable state', () => {
  assertNone(findLines(product, /^(?:export )?(?:let|var) /))
})

test('nothing names a place on one machine, a registry or a credential', () => {
  assertNone(findLines(texts, /(?:^|[\s'"`(=])\/(?:home|work|root|Users)\/|\b[A-Z]:\\Users/))
  assertNone(findLines(texts, /https?:\/\/[\w.-]*(?:registry|npmjs|pypi)[\w.-]*|_authToken/i))
})

test('the lock file says nothing about where packages came from', () => {
  assertNone(findLines([readSource('package-lock.json'), readSource('docs/tools/package-lock.json')], /"resolved"/))
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
