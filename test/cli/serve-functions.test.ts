import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Command } from 'commander'
import { REPOSITORY } from '../../bench/repository.ts'
import { automation, DEFAULT_AUTOMATION_LIMITS, DEFAULT_RUN_TIMES } from '../../src/automation-server/index.ts'
import { describeFailure } from '../../src/cli/common/exit.ts'
import {
  addFunctions,
  automationOptionsOf,
  functionProcessOf,
  type FunctionServeOptions,
} from '../../src/cli/server/function-options.ts'
import { registerFiles } from '../../src/cli/server/serve-functions.ts'
import { temporaryFolder } from '../support/folder.ts'

const RULE_CHECKER = join(REPOSITORY, 'bench/functions/rule-checker.ts')

/* What a package would have in its node_modules. */
const SOURCES = join(REPOSITORY, 'src')
const SERVER_URL = 'http://127.0.0.1:8642'
/* Later nodes run it, and say that it is no function. */
const KNOWS_TYPESCRIPT = Boolean((process.features as { readonly typescript?: unknown }).typescript)

function written(t: TestContext, name: string, code: string): string {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, name), code)
  return join(folder, name)
}

/** Its stack is longer than what is kept of the end of an output. */
const DEEP = `function deep(left) {
  if (left === 0) throw new RangeError('too deep')
  deep(left - 1)
}
Error.stackTraceLimit = 50
deep(40)`

/** A command in its shortest form: it writes this schema. */
function writing(schema: object): string {
  return `require('node:fs').writeFileSync(process.argv[3], ${JSON.stringify(JSON.stringify(schema))})`
}

/** What the parser makes of options of `stowage serve` about functions. */
function parsed(...args: readonly string[]): FunctionServeOptions {
  const command = new Command().exitOverride().configureOutput({ writeErr: () => undefined })
  addFunctions(command)
  return command.parse(args, { from: 'user' }).opts()
}

test('a function file is registered under its name, with the metadata in its code', async (t) => {
  const extension = automation({ serverUrl: SERVER_URL })
  const schema = { type: 'object', properties: { tolerance: { type: 'number' } } }
  await registerFiles(extension, [RULE_CHECKER, written(t, 'plain.cjs', writing(schema))], { readablePaths: [SOURCES] })
  const [plain, checker] = extension.functions()
  assert.deepEqual(
    [plain.id, plain.name, plain.description, Object.keys(plain.inputs.properties)],
    ['plain', 'plain', '', ['tolerance']],
  )
  assert.deepEqual(
    [checker.id, checker.name, checker.inputs.properties.minimumMinutes.maximum],
    ['rule-checker', 'Rule checker', 360],
  )
  assert.match(checker.description, /^Marks walls/)
  assert.match(checker.release, /^[0-9a-f]{12}$/)
})

test('a file that is not a function is refused with its name and the fault', async (t) => {
  const good = written(t, 'same.cjs', writing({ type: 'object', properties: {} }))
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [
      [join(tmpdir(), 'no-such-function.js')],
      /^--function \S+no-such-function\.js: there is no such file; give the path of a file that ends with executeFunction \("\S+no-such-function\.js"\)$/,
    ],
    [[tmpdir()], /: this is a folder; name the file in it that ends with executeFunction/],
    [['/dev/null'], /: this is a pipe or a device, not a file/],
    [
      [written(t, 'checker.py', 'print(1)')],
      /checker\.py: its name ends with "\.py"; it must be a file of JavaScript \(\.js, \.mjs, \.cjs\) or TypeScript/,
    ],
    [
      [written(t, 'empty.cjs', '')],
      /empty\.cjs: .* it wrote no file; the file of a function ends with a call of executeFunction$/,
    ],
    [
      [written(t, 'broken.cjs', "throw new Error('a library is missing')")],
      /broken\.cjs: .*: it threw Error: a library is missing \(\S+broken\.cjs:1\)$/,
    ],
    [[written(t, 'deep.mjs', DEEP)], /deep\.mjs: .*: it threw RangeError: too deep \(\S+deep\.mjs:2\)$/],
    [[written(t, 'syntax.mjs', 'const = 5')], /syntax\.mjs: .*: it threw SyntaxError: .* \(\S+syntax\.mjs:1\)$/],
    [
      [written(t, 'lonely.mjs', "import 'stowage-has-no-such-package'")],
      /lonely\.mjs: .*: it threw Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package 'stowage-has-no-such-package' imported from \S+$/,
    ],
    [
      [written(t, 'text.cjs', "throw 'a text'")],
      /text\.cjs: .*: it ended with exit code 1; the end of its output:.* a text /,
    ],
    [[written(t, 'exits.cjs', 'process.exit(3)')], /exits\.cjs: .*: it ended with exit code 3, and printed nothing$/],
    [
      [written(t, 'list.cjs', writing({ type: 'object', properties: { list: { type: 'array' } } }))],
      /list\.cjs: .*"\/properties\/list\/type"/,
    ],
    [
      [written(t, 'no id.cjs', writing({ type: 'object', properties: {} }))],
      /no id\.cjs: a function's id is "no id"; it must be/,
    ],
    ...(KNOWS_TYPESCRIPT
      ? []
      : [
          [
            [written(t, 'typed.ts', 'export {}')],
            /typed\.ts: node v.* does not run TypeScript; compile the file, install tsx beside it/,
          ] as const,
        ]),
    [[good, good], /same\.cjs: the function "same" is already registered; each id may be registered once/],
  ]
  await Promise.all(
    cases.map(async ([files, words]) =>
      assert.rejects(
        registerFiles(automation({ serverUrl: SERVER_URL }), files),
        (error) => words.test(describeFailure(error)) || assert.fail(describeFailure(error)),
      ),
    ),
  )
})

test('functions receive the named variables and a memory limit', async (t) => {
  process.env.STOWAGE_TEST_CHECKER = 'Checker of the environment'
  t.after(() => delete process.env.STOWAGE_TEST_CHECKER)
  const code = `const title = [process.env.STOWAGE_TEST_CHECKER, process.env.NODE_OPTIONS, process.env.USER].join()
    require('node:fs').writeFileSync(process.argv[3], JSON.stringify({ title, type: 'object', properties: {} }))`
  const extension = automation({ serverUrl: SERVER_URL })
  const { function: files = [], ...options } = parsed(
    '--function',
    written(t, 'told.cjs', code),
    '--function-env',
    'STOWAGE_TEST_CHECKER',
    '--function-memory-bytes-max',
    '268435456',
  )
  await registerFiles(extension, files, functionProcessOf(options))
  assert.equal(extension.functions()[0].name, 'Checker of the environment,--max-old-space-size=192,')
})

test('times and numbers of runs are options, and invalid ones are refused with valid examples', () => {
  const options = [
    '--function-timeout',
    '15m',
    '--function-concurrency',
    '3',
    '--pending-timeout',
    '12h',
    '--pending-runs-max',
    '7',
  ]
  assert.deepEqual(automationOptionsOf(parsed(...options)), {
    runMsMax: 900_000,
    concurrency: 3,
    pendingMsMax: 43_200_000,
    limits: { pendingRunsMax: 7 },
  })
  assert.deepEqual(automationOptionsOf(parsed()), {
    runMsMax: DEFAULT_RUN_TIMES.runMsMax,
    pendingMsMax: DEFAULT_RUN_TIMES.pendingMsMax,
    limits: { pendingRunsMax: DEFAULT_AUTOMATION_LIMITS.pendingRunsMax },
  })
  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ['--function-timeout', '30d', /24 days at most/],
    ['--function-timeout', '15', /a whole number, at least 1, and a unit: 90s, 15m/],
    ['--function-memory-bytes-max', '1000', /134217728 \(128 MB\) or more/],
    ['--pending-runs-max', '20000', /an integer from 1 to 10000/],
    ['--function-concurrency', '0', /1 or more/],
  ]
  for (const [name, value, words] of wrong) assert.throws(() => parsed(name, value), words)
  const names: readonly (readonly [string, RegExp])[] = [
    ['STOWAGE_NOBODY_SETS_THIS', /^--function-env "STOWAGE_NOBODY_SETS_THIS": there is no such variable/],
    ['9LIVES', /^--function-env "9LIVES": it must be the name of a variable/],
    [
      'API_KEY=swordfish',
      /^--function-env "API_KEY": it must be the name alone; the value is taken from the environment of this command$/,
    ],
  ]
  for (const [name, message] of names)
    assert.throws(() => functionProcessOf(parsed('--function-env', name)), { code: 'invalid_request', message })
})

test('the operations page lists every limit, time and option', async () => {
  const page = await readFile(join(REPOSITORY, 'docs/automation-server.md'), 'utf8')
  for (const name of [...Object.keys(DEFAULT_AUTOMATION_LIMITS), ...Object.keys(DEFAULT_RUN_TIMES)])
    assert.ok(page.includes(`\`${name}\``), name)
  for (const name of ['annotationObjectsMax', 'bodyBytesMax', 'chainMax'] as const)
    assert.match(page, new RegExp(`\\| .*\`${name}\`.*\\| ${DEFAULT_AUTOMATION_LIMITS[name].toLocaleString('en')}`))
})
